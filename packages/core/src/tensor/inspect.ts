/** What a tensor shows of itself: in the console, as nested arrays, as JSON. */
import { byteSize, numbersOf, type TypedArray, viewElements } from "../values/dtype";
import { widen } from "../values/half";
import type { Shape } from "../values/shape";
import type { NestedValues } from "./fluent";
import { format, type Run, runsOf } from "./format";
import type { Tensor } from "./tensor";

/** The shape that its values have: the parts of complex numbers lie along one more axis. */
function shownShape({ shape, dtype }: Tensor): Shape {
  const [, count] = numbersOf(dtype);
  return count === 1 ? shape : [...shape, count];
}

export function nested(x: Tensor, elements: TypedArray): NestedValues {
  const { dtype } = x;
  const shape = shownShape(x);
  const values: ArrayLike<number | boolean> =
    dtype === "bool" ? Array.from(elements, (value) => value !== 0) : elements;
  let next = 0;
  const visit = (axis: number): NestedValues =>
    axis === shape.length ? values[next++]! : Array.from({ length: shape[axis]! }, () => visit(axis + 1));
  return visit(0);
}

function placeOf(x: Tensor, { start, count }: Run): readonly [number, number] {
  const bytes = byteSize(numbersOf(x.dtype)[0]);
  return [x.memorySlice().byteOffset + start * bytes, count * bytes];
}

function written(x: Tensor, parts: readonly Uint8Array[]): string {
  const [dtype] = numbersOf(x.dtype);
  const shape = shownShape(x);
  const values = parts.flatMap((part) => {
    const count = part.length / byteSize(dtype);
    return Array.from(widen(viewElements(part.slice().buffer, 0, count, dtype), dtype));
  });
  return `${x}${shape.length > 1 ? "\n" : " "}${format(shape, dtype, values)}`;
}

/** With values where the device answers at once; never an error, since consoles and debuggers ask at any time. */
export function inspected(x: Tensor): string {
  if (x.isDisposed) return String(x);
  try {
    x.device.checkReadable();
    const { backend } = x.device;
    const { memory } = x.memorySlice();
    if (backend.readSync === undefined) return `${x}, values by await x.print()`;
    return written(
      x,
      runsOf(shownShape(x)).map((run) => backend.readSync!(memory, ...placeOf(x, run))),
    );
  } catch {
    return String(x);
  }
}

export async function printed(x: Tensor): Promise<string> {
  const { backend } = x.device;
  const { memory } = x.memorySlice();
  return written(x, await Promise.all(runsOf(shownShape(x)).map((run) => backend.read(memory, ...placeOf(x, run)))));
}
