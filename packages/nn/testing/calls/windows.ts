/** Calls of convolutions, pools and changes of size, of which PyTorch knows the values, the gradients and their gradients. */
import type { Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { holding, python, RandomInputs } from "../random-inputs";

type Run = (x: Tensor) => Tensor;
type Add = (name: string, x: CallInput, python: string, run: Run) => void;

interface Configuration {
  readonly make: RandomInputs;
  readonly dtype: "f32" | "f64";
  readonly calls: TorchCall[];
  readonly i: number;
  readonly add: Add;
}

const MODES: readonly nn.PaddingMode[] = ["zeros", "reflect", "replicate", "circular"];
const TOLERANCE = { f32: { absolute: 1e-4, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;

/** Each layer in `count` random configurations. */
export function windowCalls(count: number): TorchCall[] {
  const make = new RandomInputs(41);
  const calls: TorchCall[] = [];
  for (let i = 0; i < count; i++) {
    const dtype = i % 2 === 0 ? "f64" : "f32";
    const add: Add = (name, x, code, run) =>
      calls.push({
        name: `${i}: ${name}, ${code} of [${x.shape}], ${dtype}`,
        inputs: [x],
        code,
        run: (a) => run(a!),
        second: dtype === "f64",
        tolerance: TOLERANCE[dtype],
      });
    const configuration = { make, dtype, calls, i, add } as const;
    for (const family of [convolutions, transposed, pools, sizes]) family(configuration);
  }
  return calls;
}

/** [batch, channels, ...extents], sometimes without the batch. */
function input({ make, dtype }: Configuration, channels: number, axes: number, least: number): CallInput {
  const extents = Array.from({ length: axes }, () => make.between(least, axes === 3 ? 4 : 6));
  return make.numbers([...(make.flip() ? [make.between(1, 2)] : []), channels, ...extents], dtype);
}

function convolution(
  { make, dtype, calls, i }: Configuration,
  code: string,
  layer: nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.ConvTranspose1d | nn.ConvTranspose2d,
  x: CallInput,
): void {
  const scaled = { low: -0.6, high: 0.6 };
  calls.push({
    name: `${i}: ${code} of [${x.shape}], ${dtype}`,
    inputs: [x, make.numbers(layer.weight.shape, dtype, scaled), make.numbers(layer.bias!.shape, dtype, scaled)],
    code: `torch.func.functional_call(${code}, dict(weight=b, bias=c), (a,))`,
    run: (a, b, c) => holding(layer, { weight: b, bias: c }).forward(a!),
    second: dtype === "f64",
    tolerance: TOLERANCE[dtype],
  });
}

function convolutions(configuration: Configuration): void {
  const { make, dtype } = configuration;
  const groups = make.between(1, 2);
  const [inside, out] = [groups * make.between(1, 2), groups * make.between(1, 2)];
  for (const axes of [1, 2, 3] as const) {
    const kernel = Array.from({ length: axes }, () => make.between(1, 3));
    const dilation = Array.from({ length: axes }, () => make.between(1, axes === 3 ? 1 : 2));
    const isSame = make.flip();
    const stride = Array.from({ length: axes }, () => (isSame ? 1 : make.between(1, 2)));
    const padding = isSame ? "same" : Array.from({ length: axes }, () => make.between(0, 1));
    const paddingMode = make.random.pick(MODES);
    const list = (values: readonly number[]) => (axes === 1 ? String(values[0]) : `(${values})`);
    const text = `stride=${list(stride)}, padding=${isSame ? '"same"' : list(padding as number[])}, dilation=${list(dilation)}, groups=${groups}, padding_mode="${paddingMode}"`;
    const options = { stride, padding, dilation, groups, paddingMode, dtype };
    // biome-ignore lint/suspicious/noExplicitAny: lists of as many numbers as there are axes
    const Layer = [nn.Conv1d, nn.Conv2d, nn.Conv3d][axes - 1] as any;
    const x = input(configuration, inside, axes, axes === 3 ? 3 : 5);
    const code = `nn.Conv${axes}d(${inside}, ${out}, ${list(kernel)}, ${text})`;
    convolution(configuration, code, new Layer(inside, out, kernel, options), x);
  }
}

function transposed(configuration: Configuration): void {
  const { make, dtype } = configuration;
  const groups = make.between(1, 2);
  const [inside, out, kernel] = [groups * make.between(1, 2), groups * make.between(1, 2), make.between(2, 3)];
  const [stride, padding, dilation] = [make.between(1, 3), make.between(0, 1), make.between(1, 2)];
  const outputPadding = make.between(0, Math.max(stride, dilation) - 1);
  const text = `stride=${stride}, padding=${padding}, dilation=${dilation}, output_padding=${outputPadding}, groups=${groups}`;
  const options = { stride, padding, dilation, outputPadding, groups, dtype };
  for (const axes of [1, 2] as const) {
    const Layer = axes === 1 ? nn.ConvTranspose1d : nn.ConvTranspose2d;
    const code = `nn.ConvTranspose${axes}d(${inside}, ${out}, ${kernel}, ${text})`;
    convolution(configuration, code, new Layer(inside, out, kernel, options), input(configuration, inside, axes, 3));
  }
}

function pools(configuration: Configuration): void {
  const { make, add } = configuration;
  const kernel = make.between(1, 3);
  const [stride, padding] = [make.between(1, 3), make.between(0, Math.floor(kernel / 2))];
  const [ceilMode, countIncludePad] = [make.flip(), make.flip()];
  const dilation = padding === 0 ? make.between(1, 2) : 1;
  const sliding = `${kernel}, ${stride}, ${padding}, ceil_mode=${python(ceilMode)}`;
  for (const axes of [1, 2] as const) {
    const x = () => input(configuration, 2, axes, 5);
    const max = { stride, padding, dilation, ceilMode };
    const largest = axes === 1 ? new nn.MaxPool1d(kernel, max) : new nn.MaxPool2d(kernel, max);
    add("MaxPool", x(), `F.max_pool${axes}d(a, ${sliding}, dilation=${dilation})`, (a) => largest.forward(a));
    const average = { stride, padding, ceilMode, countIncludePad };
    const mean = axes === 1 ? new nn.AvgPool1d(kernel, average) : new nn.AvgPool2d(kernel, average);
    const code = `F.avg_pool${axes}d(a, ${sliding}, count_include_pad=${python(countIncludePad)})`;
    add("AvgPool", x(), code, (a) => mean.forward(a));
    const size = make.between(1, 5);
    const adaptive = axes === 1 ? new nn.AdaptiveAvgPool1d(size) : new nn.AdaptiveAvgPool2d(size);
    add("AdaptiveAvgPool", x(), `F.adaptive_avg_pool${axes}d(a, ${size})`, (a) => adaptive.forward(a));
  }
}

function sizes(configuration: Configuration): void {
  const { make, dtype, add } = configuration;
  const axes = make.between(1, 3);
  const isLinear = make.flip();
  const alignCorners = isLinear && make.flip();
  const mode = isLinear ? (["linear", "bilinear", "trilinear"] as const)[axes - 1]! : "nearest";
  const x = make.numbers([2, 2, ...Array.from({ length: axes }, () => make.between(1, 5))], dtype);
  const isSize = make.flip();
  const numbers = Array.from({ length: axes }, () =>
    isSize ? make.between(1, 8) : make.between(2, 7) / make.between(1, 2),
  );
  const layer = new nn.Upsample({
    mode,
    ...(isLinear && { alignCorners }),
    [isSize ? "size" : "scaleFactor"]: numbers,
  });
  const align = isLinear ? `, align_corners=${python(alignCorners)}` : "";
  const code = `F.interpolate(a, ${isSize ? "size" : "scale_factor"}=(${numbers},), mode="${mode}"${align})`;
  add("Upsample", x, code, (a) => layer.forward(a));
  const factor = make.between(1, 3);
  const leading = Array.from({ length: make.between(0, 2) }, () => make.between(1, 2));
  const shuffle = new nn.PixelShuffle(factor);
  const images = make.numbers([...leading, 2 * factor ** 2, make.between(1, 3), make.between(1, 3)], dtype);
  add("PixelShuffle", images, `F.pixel_shuffle(a, ${factor})`, (a) => shuffle.forward(a));
  const unflatten = new nn.Unflatten(make.flip() ? 1 : -1, [2, -1]);
  add("Unflatten", make.numbers([3, 4], dtype), `a.unflatten(${unflatten.axis}, (2, -1))`, (a) => unflatten.forward(a));
}

/** Pools that are not square. */
export function unevenPools(count: number): TorchCall[] {
  const make = new RandomInputs(12);
  return Array.from({ length: count }, (_, i) => {
    const dtype = i % 2 === 0 ? "f32" : "f64";
    const x = make.numbers([make.between(1, 2), make.between(1, 3), make.between(3, 7), make.between(3, 7)], dtype);
    const kernel = [make.between(1, 3), make.between(1, 3)] as const;
    const [stride, padding] = [make.between(1, 3), make.between(0, Math.floor(Math.min(...kernel) / 2))];
    const size = [make.between(1, 5), make.random.pick([null, 1, 2, 4])] as const;
    const call = (code: string, layer: nn.Layer): TorchCall => ({
      name: `${i}: ${code} of [${x.shape}], ${dtype}`,
      inputs: [x],
      code,
      run: (a) => layer.forward(a!),
      tolerance: TOLERANCE[dtype],
    });
    return [
      call(`F.avg_pool2d(a, (${kernel}), ${stride}, ${padding})`, new nn.AvgPool2d(kernel, { stride, padding })),
      call(`F.adaptive_avg_pool2d(a, (${size[0]}, ${size[1] ?? "None"}))`, new nn.AdaptiveAvgPool2d(size)),
    ];
  }).flat();
}
