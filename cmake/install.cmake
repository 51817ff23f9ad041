# The layout of `cmake --install`. The programs expect it (/usr/lib/cgphase, /usr/share/cgphase,
# /etc/cgphase), so a prefix other than /usr is useless. packaging/deb builds on it.
if(CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT)
  set_property(CACHE CMAKE_INSTALL_PREFIX PROPERTY VALUE /usr)
endif()
include(GNUInstallDirs)

install(TARGETS cgphased RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR})
install(TARGETS cgphase RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS cgphase-restore RUNTIME DESTINATION lib/cgphase)
install(FILES model/default_model.json DESTINATION ${CMAKE_INSTALL_DATADIR}/cgphase
  RENAME model.json)
install(DIRECTORY packaging/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/cgphase)
# The file is the same in every release, because dpkg asks users who edited it about every change.
# The keys do change, so they are in an example.
install(FILES packaging/cgphase.toml DESTINATION /etc/cgphase)
install(FILES agent/config/default_config.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  RENAME cgphase.toml)
install(FILES systemd/cgphased.service systemd/cgphased-http.socket
  systemd/cgphase-restore.service systemd/cgphase.slice
  systemd/cgphase-train.service systemd/cgphase-train.timer
  DESTINATION lib/systemd/system)
install(FILES systemd/cgphase.catalog DESTINATION lib/systemd/catalog)
install(FILES packaging/completions/cgphase.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cgphase)
install(FILES packaging/completions/cgphase.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _cgphase)
install(FILES packaging/completions/cgphase.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Man pages, if scdoc is installed. That of the command has a part that the command printed. The
# page of the configuration is made from its defaults.
find_program(CGPHASE_SCDOC scdoc)
if(CGPHASE_SCDOC)
  set(pages ${CMAKE_BINARY_DIR}/man)
  file(MAKE_DIRECTORY ${pages})
  set(sources ${PROJECT_SOURCE_DIR}/docs/man)
  set(keys ${sources}/cgphase.toml.5.head.scd)
  set(awk ${sources}/configuration.awk)
  set(defaults ${PROJECT_SOURCE_DIR}/agent/config/default_config.toml)
  add_custom_command(OUTPUT ${pages}/cgphase.toml.5
    COMMAND awk -f ${awk} ${defaults} | cat ${keys} - | ${CGPHASE_SCDOC} > ${pages}/cgphase.toml.5
    DEPENDS ${awk} ${defaults} ${keys} VERBATIM)
  set(made ${pages}/cgphase.toml.5)
  foreach(page cgphase.1 cgphase.7 cgphased.8 cgphase-restore.8)
    file(GLOB parts CONFIGURE_DEPENDS ${sources}/${page}.scd ${sources}/${page}.*.scd)
    add_custom_command(OUTPUT ${pages}/${page}
      COMMAND cat ${parts} | ${CGPHASE_SCDOC} > ${pages}/${page} DEPENDS ${parts} VERBATIM)
    list(APPEND made ${pages}/${page})
  endforeach()
  add_custom_target(man ALL DEPENDS ${made})
  foreach(page ${made})
    string(REGEX MATCH "[0-9]$" section ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
endif()
