/** Windows of images as columns, and the adjoint. */
import type { Spec, Window2d } from "@opt/core/backend";
import { type Effect, type FunctionBuilder, i32, type Local, ModuleBuilder, memory } from "../../assembler";
import type { KernelSource, Target } from "../../kernel";
import { type Float, floatOf } from "../float";
import { walkRow } from "../row";
import { readWindow, validRange, type WindowLocals, windowWords } from "./windows";

/** Rows of output positions whose pixels exist: `ofRow` of vectors of pixels and of columns that lie together, else `ofOne` of an address each. */
function forRuns(
  f: FunctionBuilder,
  float: Float,
  window: WindowLocals,
  [image, columns, tapY, tapX]: readonly [Local<"i32">, Local<"i32">, Local<"i32">, Local<"i32">],
  ofRow: Parameters<typeof walkRow>[4],
  ofOne: (pixel: Local<"i32">, column: Local<"i32">) => Effect,
): void {
  const offsetY = f.local("i32", i32.sub(i32.mul(tapY, window.dilationY), window.paddingY));
  const offsetX = f.local("i32", i32.sub(i32.mul(tapX, window.dilationX), window.paddingX));
  const ys = validRange(f, [offsetY, window.strideY, window.height, window.outHeight]);
  const xs = validRange(f, [offsetX, window.strideX, window.width, window.outWidth]);
  const count = f.local("i32", i32.sub(xs.last, xs.first));
  const x = f.local("i32", i32.add(i32.mul(xs.first, window.strideX), offsetX));
  const step = f.local("i32", i32.mul(window.strideX, float.bytes));
  const outY = f.local("i32");
  f.for(outY, ys.first, ys.last, 1, () => {
    const y = i32.add(i32.mul(outY, window.strideY), offsetY);
    const at = i32.add(i32.mul(y, window.width), x);
    const to = i32.add(i32.mul(outY, window.outWidth), xs.first);
    const pixel = f.local("i32", i32.add(image, i32.mul(at, float.bytes)));
    const column = f.local("i32", i32.add(columns, i32.mul(to, float.bytes)));
    const dense = () => walkRow(f, float, [pixel, column], count, ofRow);
    f.if(i32.eq(window.strideX, 1), dense, () => {
      const steps = [
        [pixel, step],
        [column, float.bytes],
      ] as const;
      f.walk(f.local("i32", count), 1, steps, () => f.do(ofOne(pixel, column)));
    });
  });
}

/** Items are rows of the unfolded matrix: (plane, tap). */
function emitUnfold({ dtype }: Spec<"unfold">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes, scalar } = float;
  const module = new ModuleBuilder(target);
  module.items("rows", ["i32", "i32", "i32"], (f, item, input, output, table) => {
    const window = readWindow(f, table);
    const taps = f.local("i32", i32.mul(window.kernelY, window.kernelX));
    const imageBytes = f.local("i32", i32.mul(i32.mul(window.height, window.width), bytes));
    const rowBytes = f.local("i32", i32.mul(i32.mul(window.outHeight, window.outWidth), bytes));
    const image = f.local("i32", i32.add(input, i32.mul(i32.divU(item, taps), imageBytes)));
    const columns = f.local("i32", i32.add(output, i32.mul(item, rowBytes)));
    const tap = i32.remU(item, taps);
    const tapY = f.local("i32", i32.divU(tap, window.kernelX));
    const tapX = f.local("i32", i32.remU(tap, window.kernelX));
    f.do(memory.fill(columns, 0, rowBytes));
    forRuns(
      f,
      float,
      window,
      [image, columns, tapY, tapX],
      ({ load, store }, at, put) => store(put, load(at)),
      (pixel, column) => scalar.store(column, scalar.load(pixel)),
    );
  });
  return module;
}

/** Items are planes: the taps of one are added up in turn. */
function emitFold({ dtype }: Spec<"fold">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes, scalar, vector } = float;
  const module = new ModuleBuilder(target);
  module.items("planes", ["i32", "i32", "i32"], (f, plane, input, output, table) => {
    const window = readWindow(f, table);
    const taps = f.local("i32", i32.mul(window.kernelY, window.kernelX));
    const imageBytes = f.local("i32", i32.mul(i32.mul(window.height, window.width), bytes));
    const rowBytes = f.local("i32", i32.mul(i32.mul(window.outHeight, window.outWidth), bytes));
    const [tapY, tapX] = [f.local("i32"), f.local("i32")];
    const image = f.local("i32", i32.add(output, i32.mul(plane, imageBytes)));
    const columns = f.local("i32", i32.add(input, i32.mul(i32.mul(plane, taps), rowBytes)));
    f.do(memory.fill(image, 0, imageBytes));
    f.for(tapY, 0, window.kernelY, 1, () => {
      f.for(tapX, 0, window.kernelX, 1, () => {
        forRuns(
          f,
          float,
          window,
          [image, columns, tapY, tapX],
          ({ load, store }, to, from) => store(to, vector.add(load(to), load(from!))),
          (pixel, column) => scalar.store(pixel, scalar.add(scalar.load(pixel), scalar.load(column))),
        );
        f.increase(columns, rowBytes);
      });
    });
  });
  return module;
}

/** Elements of the unfolded matrix. */
const unfolded = ({ batch, channels, kernel, outHeight, outWidth }: Window2d) =>
  batch * channels * kernel[0] * kernel[1] * outHeight * outWidth;

export const unfold: KernelSource<"unfold"> = {
  emit: emitUnfold,
  launch({ input, output, window }, execution) {
    const { batch, channels, kernel } = window;
    const split = { range: batch * channels * kernel[0] * kernel[1], work: unfolded(window) };
    const table = execution.table(windowWords(window));
    execution.run("rows", split, input, output, table);
  },
};

export const fold: KernelSource<"fold"> = {
  emit: emitFold,
  launch({ input, output, window }, execution) {
    const split = { range: window.batch * window.channels, work: unfolded(window) };
    const table = execution.table(windowWords(window));
    execution.run("planes", split, input, output, table);
  },
};
