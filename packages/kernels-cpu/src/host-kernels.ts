/** Algorithms of the host in native code. */
import type { HostArguments, HostKernels } from "@opt/core/backend";
import type { Addon } from "./addon";
import { CommandWriter } from "./command";
import { OPCODE } from "./commands";
import { HOST_COMMANDS } from "./host-commands";

/** @param run throws where native code failed */
export function hostKernels(
  addon: Addon,
  threads: number,
  run: (name: keyof HostArguments, command: CommandWriter) => void,
): HostKernels {
  const command = new CommandWriter(addon);
  const kernel =
    <Name extends keyof HostArguments>(name: Name) =>
    (given: HostArguments[Name]) => {
      command.begin(OPCODE[name], threads);
      HOST_COMMANDS[name].write(command, given);
      run(name, command);
    };
  return {
    reflectRows: kernel("reflectRows"),
    rotateRows: kernel("rotateRows"),
    tridiagonalUpdate: kernel("tridiagonalUpdate"),
    sumOfRows: kernel("sumOfRows"),
    bidiagonalUpdate: kernel("bidiagonalUpdate"),
    fourierTransform: kernel("fourierTransform"),
    realFourierTransform: kernel("realFourierTransform"),
  };
}
