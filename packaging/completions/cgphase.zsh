#compdef cgphase
# zsh completion for cgphase(1). The command answers; an empty line means names of files.

local -a found
local line
while IFS= read -r line; do
  case $line in
    '') compset -P '--*='; _files ;;  # in --model=FILE the name begins after the option
    *=) compadd -S '' -- $line ;;
    *) found+=("${${line//:/\\:}/$'\t'/:}") ;;
  esac
done < <(cgphase __complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
_describe cgphase found
