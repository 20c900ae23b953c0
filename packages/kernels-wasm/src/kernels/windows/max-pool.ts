/** Largest pixel of each window, and its gradient. */
import type { Spec } from "@opt/core/backend";
import { type FunctionBuilder, i32, i32x4, type Local, ModuleBuilder, memory, type Value, v128 } from "../../assembler";
import type { KernelSource, Target } from "../../kernel";
import { type Float, floatOf } from "../float";
import { readWindow, validRange, type WindowLocals, windowWords } from "./windows";

/** Where windows begin, and what they cover. */
interface Row {
  readonly window: WindowLocals;
  /** Address of the plane. */
  readonly image: Local<"i32">;
  /** Of the first tap, perhaps above the image. */
  readonly firstY: Local<"i32">;
}

/**
 * The largest values of neighbouring windows, of which the first begins at column `firstX`, and where they lie: of four of f32, all taps of
 * which lie in the image's columns, or of one anywhere (then the lowest lane counts).
 */
function largestOf(
  f: FunctionBuilder,
  { bytes, vector, scalar }: Float,
  { window, image, firstY }: Row,
  firstX: Local<"i32">,
  windows: 1 | 4,
): [Value<"v128">, Value<"v128">] {
  const { width, strideX } = window;
  const [tapX, tapY] = [f.local("i32"), f.local("i32")];
  const none = f.constant(i32x4.const([-1, -1, -1, -1]));
  const best = f.local("v128", none);
  const largest = f.local("v128", vector.splat(scalar.const(Number.NEGATIVE_INFINITY)));
  const neighbours = f.local("v128", i32x4.mul(i32x4.splat(strideX), i32x4.const([0, 1, 2, 3])));
  f.for(tapY, 0, window.kernelY, 1, () => {
    const y = f.local("i32", i32.add(firstY, i32.mul(tapY, window.dilationY)));
    f.if(i32.ltU(y, window.height), () => {
      const x = f.local("i32", firstX);
      const look = () => {
        const place = f.local("i32", i32.add(i32.mul(y, width), x));
        const at = f.local("i32", i32.add(image, i32.mul(place, bytes)));
        const values = f.local("v128", vector.loadSplat(at));
        for (let lane = 1; lane < windows; lane++) {
          f.increase(at, i32.mul(strideX, bytes));
          f.set(values, v128.load32Lane(at, values, lane));
        }
        const areNaN = vector.ne(values, values);
        const wins = f.local("v128", v128.or(v128.or(i32x4.eq(best, none), vector.gt(values, largest)), areNaN));
        f.set(best, v128.bitselect(i32x4.add(i32x4.splat(place), neighbours), best, wins));
        f.set(largest, v128.bitselect(values, largest, wins));
      };
      f.for(tapX, 0, window.kernelX, 1, () => {
        if (windows > 1) look();
        else f.if(i32.ltU(x, width), look);
        f.increase(x, window.dilationX);
      });
    });
  });
  return [largest, best];
}

/**
 * Items are rows of output. The taps of a window are visited row by row, so that the first of equals wins, and the last NaN. What wins is selected and not
 * jumped to: no processor foresees it.
 */
function emit({ dtype }: Spec<"maxPool2d">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, input, output, indices, table) => {
      const window = readWindow(f, table);
      const { strideX, width, outWidth, paddingX } = window;
      const [item, outX] = [f.local("i32"), f.local("i32")];
      const firstTap = f.local("i32", i32.sub(0, paddingX));
      const lastTap = f.local("i32", i32.sub(i32.mul(i32.sub(window.kernelX, 1), window.dilationX), paddingX));
      const { first } = validRange(f, [firstTap, strideX, width, outWidth]);
      const { last } = validRange(f, [lastTap, strideX, width, outWidth]);
      // Without room for four windows there is no such place.
      const lastFour = f.local("i32", i32.sub(last, 4));
      f.if(i32.ltS(lastFour, first), () => f.set(last, 0));
      f.for(item, start, end, 1, () => {
        const planeBytes = i32.mul(i32.mul(window.height, width), float.bytes);
        const row: Row = {
          window,
          image: f.local("i32", i32.add(input, i32.mul(i32.divU(item, window.outHeight), planeBytes))),
          firstY: f.local("i32", i32.sub(i32.mul(i32.remU(item, window.outHeight), window.strideY), window.paddingY)),
        };
        const address = (base: Local<"i32">, bytes: number) =>
          i32.add(base, i32.mul(i32.add(i32.mul(item, outWidth), outX), bytes));
        const windowAt = () => f.local("i32", i32.sub(i32.mul(outX, strideX), paddingX));
        const put = (windows: 1 | 4, storeValues: typeof v128.store, storePlaces: typeof v128.store) => {
          const [largest, best] = largestOf(f, float, row, windowAt(), windows);
          f.do(storeValues(address(output, float.bytes), largest));
          f.do(storePlaces(address(indices, 4), best));
          f.increase(outX, windows);
        };
        const one = () => put(1, float.lowest.store, (at, best) => v128.store32Lane(at, best, 0));
        const four = () => {
          // The last four of a row may overlap those before.
          f.set(outX, f.least(outX, lastFour));
          put(4, v128.store, v128.store);
        };
        f.set(outX, 0);
        f.while(i32.ltU(outX, outWidth), () => {
          if (dtype === "f64") one();
          else f.if(i32.and(i32.geU(outX, first), i32.ltU(outX, last)), four, one);
        });
      });
    },
  );
  return module;
}

/** Items are planes. */
function emitGrad({ dtype }: Spec<"maxPool2dGrad">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes, scalar } = float;
  const module = new ModuleBuilder(target);
  module.items("planes", ["i32", "i32", "i32", "i32"], (f, plane, gradient, indices, output, table) => {
    const window = readWindow(f, table);
    const imageBytes = f.local("i32", i32.mul(i32.mul(window.height, window.width), bytes));
    const outPlane = f.local("i32", i32.mul(window.outHeight, window.outWidth));
    const at = f.local("i32");
    const image = f.local("i32", i32.add(output, i32.mul(plane, imageBytes)));
    f.do(memory.fill(image, 0, imageBytes));
    const last = f.local("i32", i32.mul(i32.add(plane, 1), outPlane));
    f.for(at, i32.mul(plane, outPlane), last, 1, () => {
      const index = f.local("i32", i32.load(i32.add(indices, i32.mul(at, 4))));
      // An index of -1 is a window of padding alone.
      f.if(i32.ltU(index, i32.mul(window.height, window.width)), () => {
        const pixel = f.local("i32", i32.add(image, i32.mul(index, bytes)));
        const sum = scalar.add(scalar.load(pixel), scalar.load(i32.add(gradient, i32.mul(at, bytes))));
        f.do(scalar.store(pixel, sum));
      });
    });
  });
  return module;
}

export const maxPool2d: KernelSource<"maxPool2d"> = {
  emit,
  launch({ input, output, indices, window }, execution) {
    const { batch, channels, outHeight, outWidth, kernel } = window;
    const range = batch * channels * outHeight;
    const split = { range, work: range * outWidth * kernel[0] * kernel[1] };
    execution.run("rows", split, input, output, indices, execution.table(windowWords(window)));
  },
};

export const maxPool2dGrad: KernelSource<"maxPool2dGrad"> = {
  emit: emitGrad,
  launch({ gradient, indices, output, window }, execution) {
    const { batch, channels, height, width } = window;
    const range = batch * channels;
    execution.run(
      "planes",
      { range, work: range * height * width },
      gradient,
      indices,
      output,
      execution.table(windowWords(window)),
    );
  },
};
