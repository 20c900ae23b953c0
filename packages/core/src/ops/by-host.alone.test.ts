// Ops that the host computes, on devices with memory of their own. Alone: they warn once in a process.
import { expectCode } from "@opt/testkit";
import { afterAll, expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { parameter, tensor, tensorFromBytes } from "../create";
import { fft, qr } from "../functions";
import type { Tensor } from "../tensor/tensor";
import { viewAsComplex } from "./complex";

const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
afterAll(() => warn.mockRestore());

const matrix = [
  [3, 1],
  [4, 2],
];

it("goes through the host where the device can be read at once, with one warning and the numbers of js", () => {
  const device = new FakeDevice({ name: "apart" });
  const x = tensor(matrix, { device });
  const [there, here] = [qr(x), qr(tensor(matrix))];
  qr(x);
  fft(x);
  expect(there.r.device).toBe(device);
  expect(there.r.tolist()).toEqual(here.r.tolist());
  expect(warn.mock.calls).toEqual([
    ["[qr] apart has no kernel for it: the host computes it, and copies there and back."],
  ]);
});

it("elsewhere names the way that waits, which works for every dtype", async () => {
  const device = new FakeDevice({ name: "later", async: true });
  const real = tensor(matrix, { device });
  const inputs: [Tensor, (x: Tensor) => Tensor][] = [
    [real, (x) => qr(x).r],
    [viewAsComplex(real), (x) => fft(x)],
  ];
  for (const [x, op] of inputs) {
    let message = "";
    try {
      op(x);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("later, which cannot be read without waiting.");
    expect(message).toContain('tensorFromBytes(await x.bytes(), x.shape, { dtype: x.dtype, device: "js" })');
    const moved = tensorFromBytes(await x.bytes(), x.shape, { dtype: x.dtype, device: "js" });
    const back = op(moved).to(device);
    expect([back.device, back.dtype]).toEqual([device, x.dtype]);
    expect(await back.bytes()).toEqual(op(moved).bytesSync());
  }
  expectCode("UNSUPPORTED", () => qr(real));
  expectCode("UNSUPPORTED", () => qr(parameter(matrix, { device })));
});
