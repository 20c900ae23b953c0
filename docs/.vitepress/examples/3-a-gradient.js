import { init, parameter } from "@opt/core";

await init("js");
const w = parameter(Array.from({ length: 81 }, (_, i) => i / 20 - 2));
const loss = w.pow(2);
loss.sum().backward();
plot(
  { loss: loss.dataSync(), gradient: w.grad.dataSync() },
  { x: w.dataSync(), xLabel: "w", title: "w² and its slope" },
);
