# A script (cmake -P): OUTPUT from TEMPLATE with the commit of SOURCE_DIR, "-dirty" when its files differ from it.
execute_process(COMMAND git describe --always --dirty --abbrev=12
                WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE LOCKSTEP_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT LOCKSTEP_COMMIT)
  set(LOCKSTEP_COMMIT "unknown-commit")
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
