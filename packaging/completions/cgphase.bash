# bash completion for cgphase(1). It takes verbs, options and their values from --help, so a new
# option needs no change here. Containers come from the daemon.
# shellcheck shell=bash

_cgphase_verbs() { cgphase "$@" --help 2>/dev/null | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p'; }
_cgphase_options() { cgphase "$@" --help 2>/dev/null | grep -oE -- '(^  |,)--?[a-z][a-z-]*' | tr -d ' ,'; }
# Values of the option $1 of a verb: the words in braces after it.
_cgphase_words() {
  local option=$1
  shift
  cgphase "$@" --help 2>/dev/null | sed -n "s/^  .*${option}[ ,].*:{\([^}]*\)}.*/\1/p" | tr , '\n'
}
_cgphase_containers() { cgphase list -o csv --no-legend 2>/dev/null | cut -d, -f1 | tr -d '"'; }

# Offers the names that begin with `word`. Names are foreign text: the shell must not expand them
# (as compgen -W would), and they are quoted for the command line.
_cgphase_offer() {
  local name
  while IFS= read -r name; do
    [[ $name != "$word"* ]] || COMPREPLY+=("$(printf %q "$name")")
  done
}

# File names are quoted, too, except the tilde of a home folder.
_cgphase_offer_files() {
  local name quoted
  while IFS= read -r name; do
    quoted=$(printf %q "$name")
    [[ $name != "~"* ]] || quoted=${quoted#\\}
    COMPREPLY+=("$quoted")
  done < <(compgen -f -- "$word")
}

_cgphase() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=() i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      -o | --output | --color | --socket) ((i += 1)) ;;  # before a verb
      -*) ;;
      *)
        verb+=("${COMP_WORDS[i]}")
        case "${verb[*]}" in model | config) ;; *) break ;; esac
        ;;
    esac
  done
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_cgphase_options "${verb[@]}")" -- "$word")
    return
  fi
  if [[ $before == -* ]]; then
    local words
    words=$(_cgphase_words "$before" "${verb[@]}")
    if [ -n "$words" ]; then
      mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
      return
    fi
  fi
  case "${verb[*]}" in
    '' | model | config)
      mapfile -t COMPREPLY < <(compgen -W "$(_cgphase_verbs "${verb[@]}")" -- "$word")
      ;;
    completion) mapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- "$word") ;;
    mode)
      if [ "$before" = mode ]; then
        mapfile -t COMPREPLY < <(compgen -W 'observe advise enforce default' -- "$word")
      else
        _cgphase_offer < <(_cgphase_containers)
      fi
      ;;
    pin)
      if [ "$before" = pin ]; then
        _cgphase_offer < <(_cgphase_containers)
      else
        mapfile -t COMPREPLY < <(compgen -W 'cpu= memory= auto' -- "$word")
        compopt -o nospace
      fi
      ;;
    show | explain | history | events | pause | resume | restore)
      _cgphase_offer < <(_cgphase_containers)
      ;;
    record | size | plot)
      _cgphase_offer < <(_cgphase_containers)
      _cgphase_offer_files
      ;;
  esac
}
complete -o default -F _cgphase cgphase
