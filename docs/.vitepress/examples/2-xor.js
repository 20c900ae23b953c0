import "@opt/kernels-wasm";
import { compile, init, manualSeed, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Linear, mseLoss, Sequential, Tanh } from "@opt/nn";

await init();
manualSeed(1);
const model = new Sequential(new Linear(2, 16), new Tanh(), new Linear(16, 1));
const optimizer = new NAdam(model.namedParameters(), { lr: 0.02 });
const x = tensor([
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
]);
const y = tensor([[0], [1], [1], [0]]);

const step = compile((x, y) => {
  const loss = mseLoss(model.forward(x), y);
  loss.backward();
  optimizer.step();
  optimizer.zeroGrad();
  return loss;
});

const losses = [];
for (let i = 0; i < 300; i++) losses.push(await step(x, y).item());
plot({ loss: losses }, { title: "XOR", logY: true });
console.log(Array.from(await model.forward(x).data(), Math.round).join(" "));
