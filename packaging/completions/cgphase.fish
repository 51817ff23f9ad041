# fish completion for cgphase(1). It takes verbs and options from --help, so a new option needs no
# change here. Containers come from the daemon.

# The verb before the cursor, one word a line.
function __cgphase_verb
    set -l value no
    set -l verb
    for word in (commandline -opc)[2..-1]
        if test $value = yes
            set value no
            continue
        end
        switch $word
            case -o --output --color --socket # before a verb
                set value yes
            case '-*'
            case '*'
                set -a verb $word
                contains -- "$verb" model config; or break
        end
    end
    test -z "$verb"; or printf '%s\n' $verb
end

function __cgphase_containers
    cgphase list -o csv --no-legend 2>/dev/null | cut -d, -f1 | tr -d '"'
end

function __cgphase_offer
    set -l verb (__cgphase_verb)
    set -l word (commandline -ct)
    set -l before (commandline -opc)[-1]
    if string match -q -- '-*' "$word"
        cgphase $verb --help 2>/dev/null | grep -oE -- '(^  |,)--?[a-z][a-z-]*' | tr -d ' ,'
        return
    end
    switch "$verb"
        case '' model config
            cgphase $verb --help 2>/dev/null |
                sed -n '/^Subcommands:/,$s/^  \([a-z]*\)  *\(.*\)/\1\t\2/p'
        case completion
            printf '%s\n' bash zsh fish
        case mode
            if test "$before" = mode
                printf '%s\n' observe advise enforce default
            else
                __cgphase_containers
            end
        case pin
            if test "$before" = pin
                __cgphase_containers
            else
                printf '%s\n' cpu= memory= auto
            end
        case show explain history events pause resume restore
            __cgphase_containers
        case record size plot
            __cgphase_containers
            __fish_complete_path "$word"
        case '*'
            __fish_complete_path "$word"
    end
end

complete -c cgphase -f -a '(__cgphase_offer)'
