/** Largest pixel of each window, and its gradient. */
import type { Spec } from "@opt/core/backend";
import { i32, ModuleBuilder, memory } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { readWindow, windowWords } from "./windows";

/** Items are rows of output. The taps of a window are visited row by row, so that the first of equals wins. */
function emit({ dtype }: Spec<"maxPool2d">, { shared }: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes, scalar } = float;
  const module = new ModuleBuilder({ shared });
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, input, output, indices, table) => {
      const window = readWindow(f, table);
      const [item, outX, tapY, tapX] = [f.local("i32"), f.local("i32"), f.local("i32"), f.local("i32")];
      f.for(item, start, end, 1, () => {
        const planeSize = i32.mul(window.height, window.width);
        const plane = i32.mul(i32.divU(item, window.outHeight), planeSize);
        const image = f.local("i32", i32.add(input, i32.mul(plane, bytes)));
        const outY = i32.remU(item, window.outHeight);
        const firstY = f.local("i32", i32.sub(i32.mul(outY, window.strideY), window.paddingY));
        const at = f.local("i32", i32.mul(item, window.outWidth));
        f.for(outX, 0, window.outWidth, 1, () => {
          const firstX = f.local("i32", i32.sub(i32.mul(outX, window.strideX), window.paddingX));
          const best = f.local("i32", -1);
          const largest = f.local(float.type, scalar.const(Number.NEGATIVE_INFINITY));
          f.for(tapY, 0, window.kernelY, 1, () => {
            const y = f.local("i32", i32.add(firstY, i32.mul(tapY, window.dilationY)));
            f.if(i32.ltU(y, window.height), () => {
              f.for(tapX, 0, window.kernelX, 1, () => {
                const x = f.local("i32", i32.add(firstX, i32.mul(tapX, window.dilationX)));
                f.if(i32.ltU(x, window.width), () => {
                  const index = f.local("i32", i32.add(i32.mul(y, window.width), x));
                  const value = f.local(float.type, scalar.load(i32.add(image, i32.mul(index, bytes))));
                  const isFirst = i32.eq(best, -1);
                  const isNewNaN = i32.and(scalar.ne(value, value), scalar.eq(largest, largest));
                  f.if(i32.or(i32.or(isFirst, scalar.gt(value, largest)), isNewNaN), () => {
                    f.set(best, index);
                    f.set(largest, value);
                  });
                });
              });
            });
          });
          f.do(scalar.store(i32.add(output, i32.mul(at, bytes)), largest));
          f.do(i32.store(i32.add(indices, i32.mul(at, 4)), best));
          f.increase(at, 1);
        });
      });
    },
  );
  return module;
}

/** Items are planes. */
function emitGrad({ dtype }: Spec<"maxPool2dGrad">, { shared }: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { bytes, scalar } = float;
  const module = new ModuleBuilder({ shared });
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32"], export: "planes" },
    (f, start, end, gradient, indices, output, table) => {
      const window = readWindow(f, table);
      const imageBytes = f.local("i32", i32.mul(i32.mul(window.height, window.width), bytes));
      const outPlane = f.local("i32", i32.mul(window.outHeight, window.outWidth));
      const [plane, at] = [f.local("i32"), f.local("i32")];
      f.for(plane, start, end, 1, () => {
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
    },
  );
  return module;
}

export const maxPool2d: KernelSource<"maxPool2d"> = {
  emit,
  launch({ input, output, indices, window }, execution) {
    const { batch, channels, outHeight, outWidth, kernel } = window;
    const range = batch * channels * outHeight;
    const addresses = [input, output, indices].map((slice) => execution.address(slice));
    const split = { range, work: range * outWidth * kernel[0] * kernel[1] };
    execution.run("rows", split, ...addresses, execution.table(windowWords(window)));
  },
};

export const maxPool2dGrad: KernelSource<"maxPool2dGrad"> = {
  emit: emitGrad,
  launch({ gradient, indices, output, window }, execution) {
    const { batch, channels, height, width } = window;
    const range = batch * channels;
    const addresses = [gradient, indices, output].map((slice) => execution.address(slice));
    execution.run(
      "planes",
      { range, work: range * height * width },
      ...addresses,
      execution.table(windowWords(window)),
    );
  },
};
