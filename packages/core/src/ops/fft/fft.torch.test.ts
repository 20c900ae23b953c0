// Fourier transforms against PyTorch: complex numbers come and go as pairs, and are squared, so that second gradients are no zeros.
import type { CallInput } from "@opt/testkit";
import { input, judge, random, table } from "../../../testing/torch-table";
import * as F from "../../functions";
import { fftfreq, rfftfreq } from "../../ranges";
import type { Tensor } from "../../tensor/tensor";
import { viewAsComplex, viewAsReal } from "../complex";

const { calls, add } = table();
const NORMS = ["backward", "forward", "ortho"] as const;
const trained = { requiresGrad: true };
const LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 20];

type Transform = (x: Tensor, options: F.FftOptions & F.FftnOptions) => Tensor;
const squared = (y: Tensor) => (y.dtype === "c64" ? viewAsReal(y) : y).pow(2);

/** @param options in Python, after a comma */
function judged(
  name: string,
  transform: Transform,
  given: CallInput,
  options: F.FftOptions & F.FftnOptions,
  told: string,
) {
  const isComplex = given.shape.at(-1) === 2 && !name.startsWith("rfft") && !name.endsWith("real");
  const torch = `torch.fft.${name.split(" ")[0]}(${isComplex ? "torch.view_as_complex(a)" : "a"}${told})`;
  const isReal = name.startsWith("irfft");
  add.second(
    `${name}${told}`,
    [given],
    `(${isReal ? torch : `torch.view_as_real((${torch}).resolve_conj())`}) ** 2`,
    (a) => squared(transform(isComplex ? viewAsComplex(a!) : a!, options)),
  );
}

const one: [string, Transform][] = [
  ["fft", F.fft],
  ["ifft", F.ifft],
  ["rfft", F.rfft],
  ["irfft", F.irfft],
  ["fft real", F.fft],
  ["ifft real", F.ifft],
];
const several: [string, Transform][] = [
  ["fft2", F.fft2],
  ["ifft2", F.ifft2],
  ["rfft2", F.rfft2],
  ["irfft2", F.irfft2],
  ["fftn", F.fftn],
  ["ifftn", F.ifftn],
];
const takesPairs = (name: string) => !name.startsWith("rfft") && !name.endsWith("real");

for (let i = 0; i < 100; i++) {
  for (const [name, transform] of one) {
    const batch = Array.from({ length: random.below(3) }, () => 1 + random.below(3));
    const shape = [...batch, random.pick(LENGTHS) + (name === "irfft" ? 1 : 0)];
    const axis = random.below(shape.length) - shape.length;
    const shaped = name === "irfft" && shape.at(axis) === 1 ? shape.with(axis, 2) : shape;
    const n = random.below(3) === 0 ? 1 + random.below(12) : undefined;
    const norm = random.pick(NORMS);
    const given = input(takesPairs(name) ? [...shaped, 2] : shaped, "f32", trained);
    judged(name, transform, given, { axis, norm, ...(n && { n }) }, `, n=${n ?? "None"}, dim=${axis}, norm='${norm}'`);
  }
  for (const [name, transform] of several) {
    const shape = Array.from({ length: 2 + random.below(2) }, () => 2 + random.below(5));
    const axes = random.below(2) === 0 ? [-2, -1] : [-1, 0];
    const sizes = random.below(3) === 0 ? [2 + random.below(4), 1 + random.below(6)] : undefined;
    const norm = random.pick(NORMS);
    const given = input(takesPairs(name) ? [...shape, 2] : shape, "f32", trained);
    const told = `, s=${sizes ? `[${sizes}]` : "None"}, dim=[${axes}], norm='${norm}'`;
    judged(name, transform, given, { axes, norm, ...(sizes && { sizes }) }, told);
  }
  const shape = Array.from({ length: 1 + random.below(3) }, () => 1 + random.below(5));
  const axis = random.below(shape.length);
  const x = input(shape, "f64", trained);
  add.second("fftshift", [x], "torch.fft.fftshift(a) ** 2", (a) => F.fftshift(a!).pow(2));
  add.second("ifftshift", [x], `torch.fft.ifftshift(a, ${axis}) ** 2`, (a) => F.ifftshift(a!, axis).pow(2));
  const [n, spacing] = [1 + random.below(20), (1 + random.below(8)) / 4];
  add("fftfreq", [], `torch.fft.fftfreq(${n}, ${spacing})`, () => fftfreq(n, spacing));
  add("rfftfreq", [], `torch.fft.rfftfreq(${n}, ${spacing})`, () => rfftfreq(n, spacing));
}
const stored = 256;
add("fftn of all axes", [input([2, 3, 4], "f32")], "torch.view_as_real(torch.fft.fftn(a))", (a) =>
  viewAsReal(F.fftn(a!)),
);
add("fftn of the last axes", [input([2, 3, 4], "f32")], "torch.view_as_real(torch.fft.fftn(a, s=[2]))", (a) =>
  viewAsReal(F.fftn(a!, { sizes: [2] })),
);
for (const dtype of ["i32", "u8", "bool"] as const)
  add("fft of whole numbers", [input([5], dtype)], "torch.view_as_real(torch.fft.fft(a))", (a) =>
    viewAsReal(F.fft(a!)),
  );
// What PyTorch rejects.
for (const dtype of ["f16", "bf16"] as const)
  add("fft of 16 bits", [input([4], dtype)], "torch.view_as_real(torch.fft.fft(a))", (a) => viewAsReal(F.fft(a!)));
add("fft of nothing", [input([3, 0], "f32")], "torch.view_as_real(torch.fft.fft(a))", (a) => viewAsReal(F.fft(a!)));
add("irfft of one", [input([1, 2], "f32")], "torch.fft.irfft(torch.view_as_complex(a))", (a) =>
  F.irfft(viewAsComplex(a!)),
);
add("rfft of pairs", [input([3, 2], "f32")], "torch.view_as_real(torch.fft.rfft(torch.view_as_complex(a)))", (a) =>
  viewAsReal(F.rfft(viewAsComplex(a!))),
);
add("fft along no axis", [input([3], "f32")], "torch.view_as_real(torch.fft.fft(a, dim=1))", (a) =>
  viewAsReal(F.fft(a!, { axis: 1 })),
);
await judge(new URL("../../../testing/goldens/fft.json", import.meta.url), calls, stored);
