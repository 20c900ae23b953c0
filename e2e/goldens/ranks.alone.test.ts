// Tensors of other ranks and extents than an op takes: each device throws an OptError before it allocates, or computes.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import * as core from "@opt/core";
import { concat, type Device, ones, type Tensor } from "@opt/core";
import { eachDevice, expectCode, rankErrors, sample, triesAll, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FUNCTIONS } from "../../packages/core/testing/valid-arguments";

useSoftwareVulkan();
const functions = Object.entries(core).filter(([name]) => name in FUNCTIONS);

/** Those whose arguments are of the default device. */
const ON_HOST = new Set(["stepArrays", "functional"]);

await eachDevice((device: Device) => {
  it("concat rejects tensors of fewer axes", () => {
    const [a, b] = [ones([4, 1], { device }), ones([4], { device })];
    const { bytes } = device.memory();
    for (const tensors of [[a, b], [b, a], [a, a.reshape([4, 1, 1])], [a, ones([], { device })]] as Tensor[][])
      for (const axis of [0, 1, -1]) expectCode(axis === 1 && tensors[0] === b ? "BAD_ARGUMENT" : "BAD_SHAPE", () => concat(tensors, axis));
    expect(device.memory().bytes).toBe(bytes + 4);
  });

  if (device.name === "js") return; // core's tests try it
  describe("functions", () => {
    // Nearly all of WebGPU's time goes into compiling shaders.
    const tried = device.name === "webgpu" ? sample(functions, 2) : functions;
    it.each(tried.filter(([name]) => !ON_HOST.has(name)))("%s", (name, call) => {
      expect(rankErrors(call as never, FUNCTIONS[name]!, { device, alike: !triesAll })).toEqual([]);
    });
  });
});
