// The entry point of one instruction set.
#include <new>

#include "commands.h"
#include "kernels.h"

namespace opt::OPT_ISA {

namespace {

/** Commands one after the other, up to one that fails. Each says first how long it is, and which of its numbers lie elsewhere until it is run. */
Status runList(Command& list) {
  const int64_t count = list.integer();
  for (int64_t i = 0; i < count; i++) {
    const int64_t length = list.integer(), loads = list.integer();
    auto* command = const_cast<double*>(list.numbers(length));
    for (int64_t k = 0; k < loads; k++) {
      double& number = command[list.integer()];
      const bool isDouble = list.flag();
      const double* place = list.pointer<const double>();
      number = isDouble ? *place : *reinterpret_cast<const float*>(place);
    }
    const Status status = run(command);
    if (status != Status::OK) return status;
  }
  return Status::OK;
}

}  // namespace

Status run(const double* numbers) {
  Command command(numbers);
  const int64_t opcode = command.integer();
  const int threads = static_cast<int>(command.integer());
  return opcode < 0 ? runList(command) : runLaunch(opcode, command, threads);
}

}  // namespace opt::OPT_ISA
