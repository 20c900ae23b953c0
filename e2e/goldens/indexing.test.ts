// What is read and written by brackets is the same on every device, those that answer later too: eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { compile, type Device, type DType, init, type Tensor, tensor } from "@opt/core";
import { eachDevice, useSoftwareVulkan } from "@opt/testkit";
import { expect, it } from "vitest";

useSoftwareVulkan();

const numbers = (count: number, start = 0) => Array.from({ length: count }, (_, i) => start + i);
const DTYPES: readonly DType[] = ["f32", "bf16", "f16", "i32", "u8", "bool"];

/** Results of reads and writes with each kind of index. */
function results(x: Tensor, value: Tensor, rows: Tensor, columns: Tensor, mask: Tensor): Tensor[] {
  const put = (index: Parameters<Tensor["assign"]>[0], given: Parameters<Tensor["assign"]>[1]) => {
    const y = x.clone();
    y.assign(index, given);
    return y;
  };
  return [
    x.at([1, null, 2], -1),
    x.at(rows),
    x.at(rows, columns),
    x.at(null, columns),
    put([[null, null, 2], [1, 3]], value.reshape([2, 2])),
    put([1, null], 1),
    put([rows], value.select(0, 0).reshape([])),
    put([rows, columns], value.slice(0, 3)),
    put([null, columns], value.slice(0, 3)),
    put([mask], value.slice(0, 1)),
    put([mask, 2], value.slice(0, 2)),
  ];
}

async function answers(device: Device, dtype: DType, isCompiled: boolean): Promise<unknown[]> {
  const x = tensor(numbers(16).map((i) => i % 7), { shape: [4, 4] }).to(dtype).to(device);
  const value = tensor(numbers(4, 2)).to(dtype).to(device);
  const [rows, columns] = [[0, -1, 2], [1, 3, 0]].map((list) => tensor(list, { dtype: "i32", device })) as [Tensor, Tensor];
  const mask = tensor([true, false, false, true]).to(device);
  const run = isCompiled ? compile(results, { check: "never" }) : results;
  if (isCompiled) run(x, value, rows, columns, mask);
  return Promise.all(run(x, value, rows, columns, mask).map(async (result) => [result.dtype, result.shape, [...(await result.data())]]));
}

const js = await init("js");

await eachDevice((device) => {
  it.each(DTYPES.flatMap((dtype) => [[dtype, false] as const, [dtype, true] as const]))("%s, compiled: %s", async (dtype, isCompiled) => {
    expect(await answers(device, dtype, isCompiled)).toEqual(await answers(js, dtype, false));
  });

  it("gradients go to the value and to what stays", async () => {
    const x = tensor(numbers(6), { shape: [2, 3], device, requiresGrad: true });
    const value = tensor([5, 6], { device, requiresGrad: true });
    const y = x.mul(2);
    y.assign([1, tensor([2, 0], { dtype: "i32", device })], value);
    y.mul(y).sum().backward();
    expect([...(await x.grad!.data())]).toEqual([0, 8, 16, 0, 32, 0]);
    expect([...(await value.grad!.data())]).toEqual([10, 12]);
  });
});
