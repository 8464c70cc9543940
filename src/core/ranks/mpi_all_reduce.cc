#include "core/ranks/mpi_all_reduce.h"

#include "core/os/dynamic_library.h"
#include "core/ranks/mpi_group.h"

namespace gauntlet::ranks {

Expected<AllReduce> find_mpi_all_reduce() {
  const auto path = find_mpi_library();
  if (!path) return path.error();
  const auto library =
      DynamicLibrary::open({.names = {*path}, .folders = {}, .scope = SymbolScope::global});
  if (!library) return library.error();
  // As OpenMPI's mpi.h has them: handles are addresses of objects, and "in place" is address 1.
  using Function = int (*)(const void*, void*, int, void*, void*, void*);
  const auto function = library->address("MPI_Allreduce");
  const auto real = library->address("ompi_mpi_float");
  const auto sum = library->address("ompi_mpi_op_sum");
  const auto world = library->address("ompi_mpi_comm_world");
  for (const auto* found : {&function, &real, &sum, &world}) {
    if (!*found) return found->error();
  }
  library->keep_loaded();
  return AllReduce([call = reinterpret_cast<Function>(*function), real = *real, sum = *sum,
                    world = *world](std::span<float> numbers) {
    void* const in_place = reinterpret_cast<void*>(1);
    return call(in_place, numbers.data(), static_cast<int>(numbers.size()), real, sum, world) == 0;
  });
}

}  // namespace gauntlet::ranks
