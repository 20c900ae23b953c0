/** What the types promise: checked by the compiler, run to see that it is true. */
import { expect, it } from "vitest";
import { tensor } from "../create";

it("data() is the array that it is taken for, bytes() a body of fetch", async () => {
  const x = tensor([1, 2, 3]);
  const elements: Float32Array = await x.data();
  const labels: Int32Array = tensor([1, 2], { dtype: "i32" }).dataSync();
  const response = new Response(await x.bytes());
  expect(elements).toBeInstanceOf(Float32Array);
  expect(labels).toBeInstanceOf(Int32Array);
  expect(new Float32Array(await response.arrayBuffer())).toEqual(elements);
  // @ts-expect-error data() gives typed arrays alone
  const numbers: number[] = await x.data();
  expect(Array.isArray(numbers)).toBe(false);
});
