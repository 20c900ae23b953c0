/** The windows of images as the right side of a product: panels are packed from the images, without columns in memory. */
import { type FunctionBuilder, i32, type Local, type ModuleBuilder, memory, type Operand, v128 } from "../../assembler";
import type { Float } from "../float";
import { panelColumns } from "../matmul/pack";
import { readWindow, type WindowLocals } from "./windows";

/** A place in windows: its plane's address, and the offset of its pixel from the first one's of a window without padding. */
function placeOf(f: FunctionBuilder, { bytes }: Float, window: WindowLocals, image: Local<"i32">, index: Local<"i32">) {
  const { height, width, kernelY, kernelX, paddingY, paddingX, dilationY, dilationX } = window;
  const taps = f.local("i32", i32.mul(kernelY, kernelX));
  const planeBytes = f.local("i32", i32.mul(i32.mul(height, width), bytes));
  const plane = f.local("i32", i32.add(image, i32.mul(i32.divU(index, taps), planeBytes)));
  const tap = f.local("i32", i32.remU(index, taps));
  const [tapY, tapX] = [f.local("i32", i32.divU(tap, kernelX)), f.local("i32", i32.remU(tap, kernelX))];
  const y = f.local("i32", i32.sub(i32.mul(tapY, dilationY), paddingY));
  const x = f.local("i32", i32.sub(i32.mul(tapX, dilationX), paddingX));
  const next = () => {
    f.increase(tapX, 1);
    f.increase(x, dilationX);
    f.if(i32.eq(tapX, kernelX), () => {
      f.set(tapX, 0);
      f.set(x, i32.sub(0, paddingX));
      f.increase(tapY, 1);
      f.increase(y, dilationY);
      f.if(i32.eq(tapY, kernelY), () => {
        f.set(tapY, 0);
        f.set(y, i32.sub(0, paddingY));
        f.increase(plane, planeBytes);
      });
    });
  };
  return { plane, y, x, next };
}

/** Where in a row vectors of `count` pixels may begin if windows follow each other without strides: none if it is shorter. */
function vectorEnd(f: FunctionBuilder, { strideX, width }: WindowLocals, count: number): Local<"i32"> {
  const end = f.local("i32", 0);
  f.if(i32.and(i32.eq(strideX, 1), i32.geU(width, count)), () => f.set(end, i32.sub(width, count - 1)));
  return end;
}

/** (table, plane, y, x, outY, outX, count, target): the pixel at offset (y, x) of `count` windows of one plane, from (outY, outX) on, `step` bytes apart. */
function emitCopyPixels(module: ModuleBuilder, { bytes, lanes, scalar, type }: Float, step: number) {
  const storeLane = type === "f32" ? v128.store32Lane : v128.store64Lane;
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, table, plane, offsetY, offsetX, outY, outX, count, target) => {
      const window = readWindow(f, table);
      const { height, width, outWidth, strideY, strideX } = window;
      const dense = vectorEnd(f, window, lanes);
      f.while(count, () => {
        const run = f.least(i32.sub(outWidth, outX), count);
        f.decrease(count, run);
        const y = f.local("i32", i32.add(i32.mul(outY, strideY), offsetY));
        const x = f.local("i32", i32.add(i32.mul(outX, strideX), offsetX));
        const row = f.local("i32", i32.add(plane, i32.mul(i32.mul(y, width), bytes)));
        const isInside = f.local("i32", i32.ltU(y, height));
        const ofVectors = f.local("i32", i32.mul(isInside, dense));
        const end = f.local("i32", i32.mul(isInside, width));
        const at = i32.add(row, i32.mul(x, bytes));
        f.while(run, () => {
          f.if(
            i32.and(i32.geU(run, lanes), i32.ltU(x, ofVectors)),
            () => {
              const pixels = f.local("v128", v128.load(at));
              if (step === bytes) f.do(v128.store(target, pixels));
              else for (let lane = 0; lane < lanes; lane++) f.do(storeLane(target, pixels, lane, lane * step));
              f.increase(x, lanes);
              f.increase(target, lanes * step);
              f.decrease(run, lanes);
            },
            () => {
              const pixel = f.local(type, scalar.const(0));
              f.if(i32.ltU(x, end), () => f.set(pixel, scalar.load(at)));
              f.do(scalar.store(target, pixel));
              f.increase(x, strideX);
              f.increase(target, step);
              f.decrease(run, 1);
            },
          );
        });
        f.set(outX, 0);
        f.increase(outY, 1);
      });
    },
  );
}

/**
 * As `emitPackB`, (images, table, p, j, k, columns, target): a panel of steps `p` to `p + k`. Steps are
 * places in the windows of one image; transposed, they are the windows of all images, and columns are places.
 */
export function emitPackWindows(module: ModuleBuilder, float: Float, transposed: boolean) {
  const { bytes } = float;
  const rowBytes = panelColumns(float) * bytes;
  const copyPixels = emitCopyPixels(module, float, transposed ? rowBytes : bytes);
  return module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32"] },
    (f, images, table, p, j, k, columns, target) => {
      const window = readWindow(f, table);
      const { channels, height, width, outHeight, outWidth, strideY, strideX } = window;
      const quotient = (a: Operand<"i32">, b: Operand<"i32">) => f.local("i32", i32.divU(a, b));
      const remainder = (a: Operand<"i32">, b: Operand<"i32">) => f.local("i32", i32.remU(a, b));
      const step = f.local("i32");
      f.if(i32.ltU(columns, panelColumns(float)), () => f.do(memory.fill(target, 0, i32.mul(k, rowBytes))));
      if (transposed) {
        const outPlane = f.local("i32", i32.mul(outHeight, outWidth));
        const imageBytes = f.local("i32", i32.mul(i32.mul(i32.mul(channels, height), width), bytes));
        const at = remainder(p, outPlane);
        const [firstY, firstX] = [quotient(at, outWidth), remainder(at, outWidth)];
        const image = f.local("i32", i32.add(images, i32.mul(quotient(p, outPlane), imageBytes)));
        const place = placeOf(f, float, window, image, j);
        f.for(step, 0, columns, 1, () => {
          const [plane, y, x] = [f.local("i32", place.plane), f.local("i32", firstY), f.local("i32", firstX)];
          const [left, to] = [f.local("i32", k), f.local("i32", target)];
          const run = f.least(i32.sub(outPlane, at), left);
          f.while(left, () => {
            f.do(copyPixels(table, plane, place.y, place.x, y, x, run, to));
            f.increase(to, i32.mul(run, rowBytes));
            f.decrease(left, run);
            f.increase(plane, imageBytes);
            f.set(y, 0);
            f.set(x, 0);
            f.set(run, f.least(outPlane, left));
          });
          f.increase(target, bytes);
          place.next();
        });
        return;
      }
      const [firstY, firstX] = [quotient(j, outWidth), remainder(j, outWidth)];
      const [top, left] = [f.local("i32", i32.mul(firstY, strideY)), f.local("i32", i32.mul(firstX, strideX))];
      const isInRow = i32.leU(i32.add(firstX, panelColumns(float)), outWidth);
      const dense = f.local("i32", i32.mul(isInRow, vectorEnd(f, window, panelColumns(float))));
      const place = placeOf(f, float, window, images, p);
      f.for(step, 0, k, 1, () => {
        const [y, x] = [f.local("i32", i32.add(top, place.y)), f.local("i32", i32.add(left, place.x))];
        f.if(
          i32.and(i32.ltU(y, height), i32.ltU(x, dense)),
          () => {
            const offset = i32.mul(i32.add(i32.mul(y, width), x), bytes);
            const at = f.local("i32", i32.add(place.plane, offset));
            for (let v = 0; v < rowBytes; v += 16) f.do(v128.store(target, v128.load(at, v), v));
          },
          () => f.do(copyPixels(table, place.plane, place.y, place.x, firstY, firstX, columns, target)),
        );
        f.increase(target, rowBytes);
        place.next();
      });
    },
  );
}
