/** What `LaunchArguments` promises devices, checked of each launch: outputs overlap no input, but where one is written as it is read. */
import { outputsOf, withSlices } from "../src/backend/launches";
import type { Slice } from "../src/backend/memory";
import type { Launch } from "../src/backend/spec";
import { byteSize } from "../src/values/dtype";
import { isDense } from "../src/values/strides";

/** Throws where a launch has an output that overlaps what it reads. */
export function checkOverlaps(launch: Launch): void {
  if (launch.kind === "rule") return; // in place
  const { spec } = launch.kernel;
  const unitOf = (slice: Slice) =>
    byteSize(
      spec.kind !== "copy" ? spec.dtype : launch.kind === "copy" && slice === launch.target ? spec.to : spec.from,
    );
  const all: Slice[] = [];
  withSlices(launch, (slice) => {
    all.push(slice);
    return slice;
  });
  const outputs = outputsOf(launch);
  for (const output of outputs)
    for (const other of all) {
      if (outputs.includes(other) || other.memory !== output.memory || other.length * output.length === 0) continue;
      const [end, otherEnd] = [output, other].map((each) => each.byteOffset + each.length * unitOf(each)) as [
        number,
        number,
      ];
      if (end <= other.byteOffset || otherEnd <= output.byteOffset || isReadInPlace(launch, output, other)) continue;
      throw new Error(`a ${launch.kind} writes what it reads`);
    }
}

/** Each element is read before it is written. */
function isReadInPlace(launch: Launch, output: Slice, input: Slice): boolean {
  if (launch.kind === "copy") return `${launch.sourceStrides}` === `${launch.targetStrides}`; // onto itself
  if (output !== (launch as { output?: Slice }).output) return false;
  if (output.byteOffset !== input.byteOffset || output.length !== input.length) return false;
  if (launch.kind === "map") return isDense(launch.shape, launch.strides[launch.inputs.indexOf(input)]!);
  if (launch.kind !== "matmul") return false;
  const operand = launch.epilogue?.operands.indexOf(input) ?? -1;
  return operand >= 0 && isDense([launch.batch, launch.m, launch.n], launch.epilogue!.strides[operand]!);
}
