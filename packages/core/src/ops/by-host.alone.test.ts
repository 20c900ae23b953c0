/** Says once in a process that the host computes for a device: this file has one to itself. */
import { expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { fft, svdvals, tensor, viewAsReal } from "../index";

it("a device with memory of its own copies to the host, with one warning", () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const device = new FakeDevice();
  const x = tensor([[3, 0], [0, 2]], { device }); // biome-ignore format: a matrix
  expect([...svdvals(x).dataSync()]).toEqual([3, 2]);
  expect([...viewAsReal(fft(tensor([1, 0], { device }))).dataSync()]).toEqual([1, 0, 1, 0]);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn.mock.calls[0]![0]).toContain("[svdvals] fake has no kernel for it");
  warn.mockRestore();
});
