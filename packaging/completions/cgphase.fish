# fish completion for cgphase(1). The command answers; an empty line means names of files.

function __cgphase_offer
    set -l word (commandline -ct)
    cgphase __complete (commandline -opc)[2..-1] "$word" 2>/dev/null | while read -l line
        if test -n "$line"
            printf '%s\n' $line
        else
            # In --model=FILE the name begins after the option.
            set -l option (string match -r '^--[^=]*=' -- "$word")
            __fish_complete_path (string replace -- "$option" '' "$word") | string replace -r '^' -- "$option"
        end
    end
end

complete -c cgphase -f -a '(__cgphase_offer)'
