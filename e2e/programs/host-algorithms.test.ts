/** Linear algebra and Fourier transforms give the same words on every exact device. */
import {
  complexMul,
  eigh,
  fft,
  Generator,
  ifft,
  init,
  irfft2,
  lu,
  matrixExp,
  pinv,
  qr,
  randn,
  rfft2,
  svd,
  type Tensor,
  tidy,
} from "@opt/core";
import { EXACT_DEVICES, eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";

const shapes = [
  [1, 1],
  [3, 5, 5],
  [2, 7, 4],
  [30, 41],
  [70, 70],
  [90, 35],
];
/** Its first rows and columns. */
function square(x: Tensor): Tensor {
  const n = Math.min(...x.shape.slice(-2));
  return x.slice(0, n, -1).slice(0, n, -2);
}

/** Its axis has the same length for all shapes. */
const LONG = "fft of long axes";

const OPS: Record<string, (x: Tensor) => readonly Tensor[]> = {
  qr: (x) => Object.values(qr(x)),
  svd: (x) => Object.values(svd(x)),
  lu: (x) => Object.values(lu(x)),
  pinv: (x) => [pinv(x)],
  eigh: (x) => Object.values(eigh(square(x))),
  matrixExp: (x) => [matrixExp(square(x).mul(0.25))],
  fft: (x) => [fft(x), fft(x, { n: 17 })],
  [LONG]: (x) => {
    const y = fft(x.slice(0, 1, -1), { axis: -2, n: 8192 });
    return [y, ifft(y, { axis: -2 })];
  },
  rfft2: (x) => [rfft2(x), irfft2(rfft2(x), { sizes: [6, 5] })],
  complexMul: (x) => [complexMul(fft(x), fft(x, { norm: "ortho" }))],
};

function wordsOf(
  run: (x: Tensor) => readonly Tensor[],
  shape: readonly number[],
  device: Tensor["device"],
): Uint8Array[] {
  return tidy(() => {
    const x = randn(shape, { generator: new Generator(5) }).to(device);
    return run(x).map((result) => result.bytesSync().slice());
  });
}

const js = await init("js");
const known = new Map<string, Uint8Array[]>();
await eachDevice(
  (device) => {
    it.each(Object.keys(OPS))("%s", (name) => {
      for (const shape of name === LONG ? [[3, 5, 5]] : shapes) {
        const expected = known.get(`${name} ${shape}`) ?? wordsOf(OPS[name]!, shape, js);
        known.set(`${name} ${shape}`, expected);
        expect(wordsOf(OPS[name]!, shape, device)).toEqual(expected);
      }
    });
  },
  EXACT_DEVICES.filter((name) => name !== "js"),
);
