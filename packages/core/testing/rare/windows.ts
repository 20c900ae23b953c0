/** Rare arguments of windows: kernels, strides, paddings and dilations that differ by axis, groups, rounded-up extents. */
import { adaptiveAvgPool2d, avgPool2d, conv2d, convTranspose2d, maxPool2d, unfold } from "../../src/ops";
import { bool, type Draw, type Row } from "../draw";

type Pair = readonly [number, number];

const between = (draw: Draw, low: number, high: number) => low + draw.int(high - low + 1);
const pair = (draw: Draw, low: number, high: number): Pair => [between(draw, low, high), between(draw, low, high)];
const tuple = (values: Pair) => `(${values})`;

/** Extents in which the window fits at least once. */
const extents = (draw: Draw, kernel: Pair, padding: Pair, dilation: Pair = [1, 1]): Pair => {
  const least = (i: 0 | 1) => Math.max(dilation[i] * (kernel[i] - 1) + 1 - 2 * padding[i], 1);
  return [least(0) + draw.int(6), least(1) + draw.int(6)];
};

const convolution: Row = (draw) => {
  const groups = between(draw, 1, 3);
  const [inside, out] = [groups * between(draw, 1, 2), groups * between(draw, 1, 3)];
  const [kernel, stride, padding, dilation] = [pair(draw, 1, 3), pair(draw, 1, 3), pair(draw, 0, 2), pair(draw, 1, 2)];
  const biased = draw.flip();
  const size = extents(draw, kernel, padding, dilation);
  return {
    inputs: [
      draw.numbers([between(draw, 1, 2), inside, ...size]),
      draw.numbers([out, inside / groups, ...kernel]),
      draw.numbers([out]),
    ],
    code: `F.conv2d(a, b, ${biased ? "c" : "None"}, ${tuple(stride)}, ${tuple(padding)}, ${tuple(dilation)}, ${groups})`,
    run: (x, w, b) => conv2d(x!, w!, biased ? b! : null, { stride, padding, dilation, groups }),
  };
};

const transposed: Row = (draw) => {
  const groups = between(draw, 1, 3);
  const [inside, out] = [groups * between(draw, 1, 2), groups * between(draw, 1, 2)];
  const [kernel, stride, dilation] = [pair(draw, 1, 3), pair(draw, 1, 3), pair(draw, 1, 2)];
  const padding = kernel.map((extent, i) => draw.int(dilation[i]! * (extent - 1) + 1)) as unknown as Pair;
  const outputPadding = stride.map((step, i) => draw.int(Math.max(step, dilation[i]!))) as unknown as Pair;
  const biased = draw.flip();
  // Extents of one keep some output: nothing is cut but the padding.
  const size = pair(draw, 2, 4);
  return {
    inputs: [
      draw.numbers([between(draw, 1, 2), inside, ...size]),
      draw.numbers([inside, out / groups, ...kernel]),
      draw.numbers([out]),
    ],
    code: `F.conv_transpose2d(a, b, ${biased ? "c" : "None"}, ${tuple(stride)}, ${tuple(padding)}, ${tuple(outputPadding)}, ${groups}, ${tuple(dilation)})`,
    run: (x, w, b) => convTranspose2d(x!, w!, biased ? b! : null, { stride, padding, outputPadding, dilation, groups }),
  };
};

const half = (kernel: Pair, draw: Draw) =>
  kernel.map((extent) => draw.int(Math.floor(extent / 2) + 1)) as unknown as Pair;

export const WINDOWS: Readonly<Record<string, Row>> = {
  "conv2d by axes": convolution,
  "convTranspose2d by axes": transposed,
  "unfold by axes": (draw) => {
    const [kernel, stride, padding, dilation] = [
      pair(draw, 1, 3),
      pair(draw, 1, 3),
      pair(draw, 0, 2),
      pair(draw, 1, 2),
    ];
    return {
      inputs: [draw.numbers([between(draw, 1, 2), 2, ...extents(draw, kernel, padding, dilation)])],
      code: `F.unfold(a, ${tuple(kernel)}, ${tuple(dilation)}, ${tuple(padding)}, ${tuple(stride)})`,
      run: (x) => unfold(x!, kernel, { stride, padding, dilation }),
    };
  },
  "maxPool2d by axes": (draw) => {
    const [kernel, stride, dilation] = [pair(draw, 1, 4), pair(draw, 1, 4), pair(draw, 1, 2)];
    const [padding, ceilMode] = [half(kernel, draw), draw.flip()];
    return {
      // A dilated window never lies in the border alone: PyTorch then writes outside of its memory.
      inputs: [draw.numbers([between(draw, 1, 2), 2, ...extents(draw, kernel, [0, 0], dilation)])],
      code: `F.max_pool2d(a, ${tuple(kernel)}, ${tuple(stride)}, ${tuple(padding)}, ${tuple(dilation)}, ${bool(ceilMode)})`,
      run: (x) => maxPool2d(x!, kernel, { stride, padding, dilation, ceilMode }),
    };
  },
  "avgPool2d by axes": (draw) => {
    const [kernel, stride] = [pair(draw, 1, 4), pair(draw, 1, 4)];
    const [padding, ceilMode, countIncludePad] = [half(kernel, draw), draw.flip(), draw.flip()];
    return {
      inputs: [draw.numbers([between(draw, 1, 2), 2, ...extents(draw, kernel, padding)])],
      code: `F.avg_pool2d(a, ${tuple(kernel)}, ${tuple(stride)}, ${tuple(padding)}, ${bool(ceilMode)}, ${bool(countIncludePad)})`,
      run: (x) => avgPool2d(x!, kernel, { stride, padding, ceilMode, countIncludePad }),
    };
  },
  "adaptiveAvgPool2d by axes": (draw) => {
    const size = [draw.random.pick([null, 1, 2, 3, 7]), draw.random.pick([null, 1, 2, 5])] as const;
    return {
      inputs: [draw.numbers([between(draw, 1, 2), 2, ...pair(draw, 1, 9)])],
      code: `F.adaptive_avg_pool2d(a, (${size.map((each) => each ?? "None").join(", ")}))`,
      run: (x) => adaptiveAvgPool2d(x!, size),
    };
  },
};
