# fish completion for cgphase(1). The command answers; an empty line means names of files.

function __cgphase_offer
    set -l word (commandline -ct)
    cgphase __complete (commandline -opc)[2..-1] "$word" 2>/dev/null | while read -l line
        if test -n "$line"
            printf '%s\n' $line
        else
            __fish_complete_path "$word"
        end
    end
end

complete -c cgphase -f -a '(__cgphase_offer)'
