import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, Generator, init, tensor, tidy } from "@opt/core";
import { crossEntropy, Linear, Sequential, Tanh } from "@opt/nn";

const device = await init();
const generator = new Generator(7);

// Two spirals of 100 points each.
const points = [],
  classes = [];
for (let i = 0; i < 200; i++) {
  const t = 0.5 + i / 40;
  const angle = t + (i % 2) * Math.PI + (generator.nextFloat() - 0.5) * 0.2;
  points.push([(t / 6) * Math.cos(angle), (t / 6) * Math.sin(angle)]);
  classes.push(i % 2);
}
const x = tensor(points),
  y = tensor(classes, { dtype: "i32" });

const model = new Sequential(
  new Linear(2, 32, { generator }),
  new Tanh(),
  new Linear(32, 32, { generator }),
  new Tanh(),
  new Linear(32, 2, { generator }),
);
const optimizer = new AdamW(model.namedParameters(), { lr: 0.02 });
const train = compile((x, y) => {
  const loss = crossEntropy(model.forward(x), y);
  loss.backward();
  optimizer.step();
  optimizer.zeroGrad();
  return loss;
});

// The decision boundary: the model's score on a grid.
const SIZE = 48,
  grid = [];
for (let i = 0; i < SIZE; i++) for (let j = 0; j < SIZE; j++) grid.push([(2 * j) / SIZE - 1, 1 - (2 * i) / SIZE]);
const gridTensor = tensor(grid);

for (let step = 1; step <= 600; step++) {
  const loss = train(x, y);
  if (step % 10 === 0) {
    const scores = await tidy(() => model.forward(gridTensor).softmax().slice(1, 2, 1)).data();
    const rows = Array.from({ length: SIZE }, (_, i) => scores.slice(i * SIZE, (i + 1) * SIZE));
    plot(rows, { title: "Two spirals and the boundary between them", points, classes });
    console.log(`${device.name}: step ${step}, loss ${(await loss.item()).toFixed(4)}`);
    await new Promise((resolve) => setTimeout(resolve, 60)); // slow enough to watch
  }
  loss.dispose();
}
