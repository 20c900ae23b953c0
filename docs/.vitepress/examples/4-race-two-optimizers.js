import { Adam } from "@opt/adam-amsgrad";
import { init, parameter } from "@opt/core";
import { SGD } from "@opt/sgd";

await init("js");

// Rosenbrock's valley: the lowest point is at (1, 1).
async function descend(make) {
  const point = parameter([-1.2, 1]);
  const optimizer = make([point]);
  const losses = [];
  for (let i = 0; i < 500; i++) {
    const [x, y] = [point.slice(0, 1), point.slice(1, 2)];
    const loss = y.sub(x.pow(2)).pow(2).mul(100).add(x.sub(1).pow(2)).sum();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    losses.push(await loss.item());
  }
  return losses;
}

plot(
  {
    Adam: await descend((points) => new Adam(points, { lr: 0.02 })),
    SGD: await descend((points) => new SGD(points, { lr: 0.001 })),
  },
  { title: "Loss in Rosenbrock's valley", yLabel: "loss", logY: true },
);
