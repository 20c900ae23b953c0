/** What short examples take for granted: a model, data, an optimizer that has stepped once, and a folder to write to. */
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, parameter, randn, tensor } from "@opt/core";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";

export const generator = new Generator(7);
export const model = new Sequential(new Linear(4, 8, { generator }), new ReLU(), new Linear(8, 3, { generator }));
export const x = randn([5, 4], { generator });
export const y = tensor([0, 2, 1, 1, 0], { dtype: "i32" });
export const w = parameter([0.5, -1, 2]);
export const lr = parameter(0.1);
export const optimizer = new AdamW(model.namedParameters(), { lr: 0.01 });
crossEntropy(model.forward(x), y).backward();
optimizer.step();
export const logits = model.forward(x);
export const labels = y;
export const loss = crossEntropy(model.forward(x), y);
export const data: [typeof x, typeof y][] = [[x, y]];
export const loader = data;
export const validation = data;
