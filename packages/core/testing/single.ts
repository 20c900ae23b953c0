/** Parameters of one element, for tests that can say in their head where a step goes. */
import { parameter, tensor } from "../src/create";
import type { Tensor } from "../src/tensor/tensor";

export const f64 = (value: number) => parameter([value], { dtype: "f64" });
export const first = (params: readonly Tensor[]) => params.map((param) => param.dataSync()[0]);
export const ones = (params: readonly Tensor[]) => {
  for (const param of params) param.grad = tensor([1], { dtype: param.dtype, device: param.device });
};
