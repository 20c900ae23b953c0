// LBFGS on every device: in float32 the words of js, and in float64 PyTorch's numbers, where the device computes them.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { type Device, parameter } from "@opt/core";
import { LBFGS } from "@opt/lbfgs";
import { eachDevice } from "@opt/testkit";
import { expect, it } from "vitest";

/** Six steps on Rosenbrock's function of two parameters. */
async function trained(dtype: "f32" | "f64", device?: Device): Promise<number[]> {
  const at = (value: number) => parameter([value], { dtype, ...(device && { device }) });
  const [x, y] = [at(-1.2), at(1)];
  const optimizer = new LBFGS([x, y], { lineSearch: "strongWolfe", maxIter: 3, historySize: 4 });
  for (let i = 0; i < 6; i++) {
    await optimizer.step(() => {
      optimizer.zeroGrad();
      const [curve, rest] = [y.sub(x.mul(x)), x.sub(1)];
      const loss = curve.mul(curve).mul(100).add(rest.mul(rest)).sum();
      loss.backward();
      return loss;
    });
  }
  return [...(await x.data()), ...(await y.data())];
}

await eachDevice((device) => {
  it("takes js's steps in float32", async () => {
    const tolerance = device.portable ? "bits" : { absolute: 0.05, relative: 0 };
    expect(await trained("f32", device)).toAgreeWith(await trained("f32"), tolerance);
  });

  it("takes js's steps in float64", async ({ skip }) => {
    skip(device.name.startsWith("webgpu"), "WebGPU has no float64");
    expect(await trained("f64", device)).toAgreeWith(await trained("f64"), { absolute: 0, relative: 1e-8 });
  });
});
