/** Rare arguments of convolutions, pools and changes of size: those that differ by axis, groups of channels, rounded-up extents. */
import type { Sweep, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const dtypeOf = (i: number) => (i % 4 === 3 ? "f32" : "f64");
const list = (values: readonly number[]) => (values.length === 1 ? String(values[0]) : `(${values.join(", ")})`);

interface Drawing {
  readonly make: RandomInputs;
  readonly i: number;
  /** A number for each axis. */
  readonly each: (low: number, high: number) => number[];
}

export function rareWindows(count: number): Sweep {
  const make = new RandomInputs(4101);
  const times = (axes: number, of: (drawing: Drawing, axes: number) => TorchCall, share = 1) =>
    Array.from({ length: Math.ceil(count * share) }, (_, i) => {
      const each = (low: number, high: number) => Array.from({ length: axes }, () => make.between(low, high));
      return of({ make, i, each }, axes);
    });
  return {
    "Conv1d, rare": times(1, convolution),
    "Conv2d, rare": times(2, convolution),
    "Conv3d, rare": times(3, convolution, 0.5),
    "ConvTranspose1d, rare": times(1, transposed),
    "ConvTranspose2d, rare": times(2, transposed),
    "MaxPool1d, rare": times(1, largest),
    "MaxPool2d, rare": times(2, largest),
    "AvgPool1d, rare": times(1, average),
    "AvgPool2d, rare": times(2, average),
    "AdaptiveAvgPool2d, rare": times(2, adaptive),
    "interpolate, rare": times(1, resized, 2),
  };
}

const sized = ({ make }: Drawing, channels: number, extents: readonly number[]) => [
  ...(make.random.below(4) === 0 ? [] : [make.between(1, 2)]),
  channels,
  ...extents,
];

function convolution(drawing: Drawing, axes: number): TorchCall {
  const { make, i, each } = drawing;
  const dtype = dtypeOf(i);
  const groups = make.between(1, 3);
  const [inside, out] = [groups * make.between(1, 2), groups * make.between(1, 2)];
  const [kernel, dilation] = [each(1, axes === 3 ? 2 : 4), each(1, 3)];
  const isSame = make.random.below(3) === 0;
  const [stride, padding] = [isSame ? each(1, 1) : each(1, 3), isSame ? ("same" as const) : each(0, 2)];
  const paddingMode = make.random.pick(["zeros", "zeros", "reflect", "replicate", "circular"] as const);
  const bias = make.flip();
  const extents = kernel.map((extent, at) => dilation[at]! * (extent - 1) + make.between(3, axes === 3 ? 3 : 6));
  // biome-ignore lint/suspicious/noExplicitAny: lists of as many numbers as there are axes
  const Layer = [nn.Conv1d, nn.Conv2d, nn.Conv3d][axes - 1] as any;
  const settings = `${inside}, ${out}, ${list(kernel)}, stride=${list(stride)}, padding=${padding === "same" ? '"same"' : list(padding)}, dilation=${list(dilation)}, groups=${groups}, bias=${python(bias)}, padding_mode="${paddingMode}"`;
  return layerCall<nn.Conv1d>(make, {
    name: `${i}: ${settings}`,
    torch: `nn.Conv${axes}d(${settings})`,
    make: (place) => new Layer(inside, out, kernel, { stride, padding, dilation, groups, bias, paddingMode, ...place }),
    dtype,
    inputs: [make.numbers(sized(drawing, inside, extents), dtype)],
    second: dtype === "f64" && axes < 3,
  });
}

function transposed(drawing: Drawing, axes: number): TorchCall {
  const { make, i, each } = drawing;
  const dtype = dtypeOf(i);
  const groups = make.between(1, 3);
  const [inside, out] = [groups * make.between(1, 2), groups * make.between(1, 2)];
  const [kernel, stride, dilation, bias] = [each(1, 4), each(1, 3), each(1, 3), make.flip()];
  const padding = kernel.map((extent, at) => make.random.below(dilation[at]! * (extent - 1) + 1));
  const outputPadding = stride.map((step, at) => make.random.below(Math.max(step, dilation[at]!)));
  const settings = `${inside}, ${out}, ${list(kernel)}, stride=${list(stride)}, padding=${list(padding)}, output_padding=${list(outputPadding)}, groups=${groups}, bias=${python(bias)}, dilation=${list(dilation)}`;
  // biome-ignore lint/suspicious/noExplicitAny: lists of as many numbers as there are axes
  const Layer = (axes === 1 ? nn.ConvTranspose1d : nn.ConvTranspose2d) as any;
  const own = (values: number[]) => (axes === 1 ? values[0]! : values);
  const options = {
    stride: own(stride),
    padding: own(padding),
    outputPadding: own(outputPadding),
    dilation: own(dilation),
  };
  return layerCall<nn.ConvTranspose1d>(make, {
    name: `${i}: ${settings}`,
    torch: `nn.ConvTranspose${axes}d(${settings})`,
    make: (place) => new Layer(inside, out, own(kernel), { ...options, groups, bias, ...place }),
    dtype,
    inputs: [make.numbers(sized(drawing, inside, each(2, 4)), dtype)],
    second: dtype === "f64",
  });
}

/** Extents in which a window fits at least once, and mostly more often. */
function window({ make, each }: Drawing, mostDilation: number) {
  const [kernel, stride, dilation] = [each(1, 4), each(1, 4), each(1, mostDilation)];
  const padding = kernel.map((extent) => make.between(0, Math.floor(extent / 2)));
  const extents = kernel.map((extent, at) =>
    // A dilated window never lies in the border alone: PyTorch then writes outside of its memory.
    Math.max(dilation[at]! * (extent - 1) + 1 - (dilation[at] === 1 ? 2 * padding[at]! : 0) + make.between(0, 6), 1),
  );
  return { kernel, stride, padding, dilation, extents, ceilMode: make.flip() };
}

function pool(drawing: Drawing, extents: readonly number[], torch: string, layer: nn.Layer): TorchCall {
  const { make, i } = drawing;
  const dtype = dtypeOf(i);
  return layerCall(make, {
    name: `${i}: ${torch} [${extents}]`,
    torch,
    make: () => layer,
    dtype,
    inputs: [make.numbers(sized(drawing, 2, extents), dtype)],
    second: dtype === "f64",
  });
}

function largest(drawing: Drawing, axes: number): TorchCall {
  const { kernel, stride, padding, dilation, extents, ceilMode } = window(drawing, 2);
  const torch = `nn.MaxPool${axes}d(${list(kernel)}, stride=${list(stride)}, padding=${list(padding)}, dilation=${list(dilation)}, ceil_mode=${python(ceilMode)})`;
  const layer =
    axes === 1
      ? new nn.MaxPool1d(kernel[0]!, { stride: stride[0]!, padding: padding[0]!, dilation: dilation[0]!, ceilMode })
      : new nn.MaxPool2d(both(kernel), {
          stride: both(stride),
          padding: both(padding),
          dilation: both(dilation),
          ceilMode,
        });
  return pool(drawing, extents, torch, layer);
}

function average(drawing: Drawing, axes: number): TorchCall {
  const { kernel, stride, padding, extents, ceilMode } = window(drawing, 1);
  const countIncludePad = drawing.make.flip();
  const torch = `nn.AvgPool${axes}d(${list(kernel)}, stride=${list(stride)}, padding=${list(padding)}, ceil_mode=${python(ceilMode)}, count_include_pad=${python(countIncludePad)})`;
  const layer =
    axes === 1
      ? new nn.AvgPool1d(kernel[0]!, { stride: stride[0]!, padding: padding[0]!, ceilMode, countIncludePad })
      : new nn.AvgPool2d(both(kernel), { stride: both(stride), padding: both(padding), ceilMode, countIncludePad });
  return pool(drawing, extents, torch, layer);
}

const both = (values: readonly number[]) => values as unknown as readonly [number, number];

function adaptive(drawing: Drawing): TorchCall {
  const { make, each } = drawing;
  const size = [make.random.pick([null, 1, 2, 3, 7]), make.random.pick([null, 1, 2, 5])] as const;
  const torch = `nn.AdaptiveAvgPool2d((${size.map(python).join(", ")}))`;
  return pool(drawing, each(1, 9), torch, new nn.AdaptiveAvgPool2d(size));
}

/** One number for all axes, and extents of one. */
function resized({ make, i }: Drawing): TorchCall {
  const dtype = dtypeOf(i);
  const axes = make.between(1, 3);
  const isLinear = make.flip();
  const mode = isLinear ? (["linear", "bilinear", "trilinear"] as const)[axes - 1]! : ("nearest" as const);
  const alignCorners = isLinear && make.flip();
  const size = make.flip() ? make.between(1, 7) : undefined;
  const scaleFactor = size === undefined ? make.random.pick([1.5, 2, 2.5, 3]) : undefined;
  const recomputeScaleFactor = size === undefined && make.flip();
  const settings = `size=${python(size ?? null)}, scale_factor=${python(scaleFactor ?? null)}, mode="${mode}"${isLinear ? `, align_corners=${python(alignCorners)}` : ""}${recomputeScaleFactor ? ", recompute_scale_factor=True" : ""}`;
  const x = make.numbers(
    [make.between(1, 2), 2, ...Array.from({ length: axes }, () => make.random.pick([1, 2, 3, 5]))],
    dtype,
  );
  return {
    name: `${i}: ${settings} of [${x.shape}], ${dtype}`,
    inputs: [x],
    code: `F.interpolate(a, ${settings})`,
    run: (a) =>
      nn.interpolate(a!, {
        mode,
        ...(size === undefined ? { scaleFactor: scaleFactor!, recomputeScaleFactor } : { size }),
        ...(isLinear && { alignCorners }),
      }),
    second: dtype === "f64",
    tolerance: { absolute: 1e-5, relative: 1e-5 },
  };
}
