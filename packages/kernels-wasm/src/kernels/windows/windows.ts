/** What kernels over sliding windows share: the window as words in memory, and the taps of one plane. */
import type { Window2d } from "@opt/core/backend";
import { type FunctionBuilder, i32, type Local, type Operand } from "../../assembler";
import { readWords } from "../words";

const WORDS = [
  ...["height", "width", "outHeight", "outWidth", "kernelY", "kernelX"],
  ...["strideY", "strideX", "paddingY", "paddingX", "dilationY", "dilationX", "channels"],
] as const;

export type WindowLocals = Readonly<Record<(typeof WORDS)[number], Local<"i32">>>;

export function windowWords(window: Window2d): number[] {
  const { channels, height, width, outHeight, outWidth, kernel, stride, padding, dilation } = window;
  return [height, width, outHeight, outWidth, ...kernel, ...stride, ...padding, ...dilation, channels];
}

export const readWindow = (f: FunctionBuilder, table: Operand<"i32">): WindowLocals => readWords(f, table, WORDS);

/** Output positions first to last (exclusive) along one axis that a kernel offset maps into 0 ... extent - 1. */
export function validRange(
  f: FunctionBuilder,
  [offset, stride, extent, outExtent]: readonly [Local<"i32">, Local<"i32">, Local<"i32">, Local<"i32">],
): { first: Local<"i32">; last: Local<"i32"> } {
  const first = f.local("i32", 0);
  const last = f.local("i32", 0);
  f.if(i32.ltS(offset, 0), () => f.set(first, i32.divU(i32.sub(i32.sub(stride, 1), offset), stride)));
  f.if(i32.ltS(offset, extent), () => {
    f.set(last, f.least(outExtent, i32.add(i32.divU(i32.sub(i32.sub(extent, 1), offset), stride), 1)));
  });
  f.if(i32.gtU(first, last), () => f.set(first, last));
  return { first, last };
}
