# cmake --install: the program in bin, the helper that it starts in libexec/rowmill, and what Slurm's users copy.
include(GNUInstallDirs)
install(TARGETS rowmill RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET rowmill_cuda)
  # where the program looks for it: ../lib/rowmill of its folder
  install(TARGETS rowmill_cuda LIBRARY DESTINATION lib/rowmill)
endif()
install(TARGETS rowmill-h5-helper RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rowmill)
install(PROGRAMS slurm/cpu.sbatch slurm/single_node.sbatch slurm/multi_node.sbatch DESTINATION ${CMAKE_INSTALL_DATADIR}/rowmill/slurm)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
