#compdef cgphase
# zsh completion for cgphase(1). It takes verbs and options from --help, so a new option needs no
# change here. Containers come from the daemon.

local -a verb found
local word value
for word in ${words[2,CURRENT-1]}; do
  if [[ -n $value ]]; then value=; continue; fi
  [[ $word == (-o|--output|--color|--socket) ]] && value=follows  # before a verb
  [[ $word == -* ]] && continue
  verb+=($word)
  [[ "$verb" == (model|config) ]] || break
done

if [[ $PREFIX == -* ]]; then
  found=(${(f)"$(cgphase $verb --help 2>/dev/null |
    grep -oE -- '(^  |,)--?[a-z][a-z-]*' | tr -d ' ,')"})
  compadd -- $found
  return
fi
case "$verb" in
  '' | model | config)
    found=(${(f)"$(cgphase $verb --help 2>/dev/null |
      sed -n '/^Subcommands:/,$s/^  \([a-z]*\)  *\(.*\)/\1:\2/p')"})
    _describe verb found
    return ;;
  completion)
    compadd bash zsh fish
    return ;;
  mode)
    if [[ ${words[CURRENT-1]} == mode ]]; then
      compadd observe advise enforce default
      return
    fi ;;
  pin)
    if [[ ${words[CURRENT-1]} != pin ]]; then
      compadd -S '' cpu= memory= auto
      return
    fi ;;
esac
case "$verb" in
  show | explain | history | events | mode | pause | resume | pin | restore | record | size | plot)
    found=(${(f)"$(cgphase list -o csv --no-legend 2>/dev/null | cut -d, -f1 | tr -d '"')"})
    compadd -- $found ;;
esac
_files
