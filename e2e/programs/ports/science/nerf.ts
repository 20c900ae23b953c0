import { concat, cos, cumprod, type DType, linspace, onesLike, sin, type Tensor } from "@opt/core";
import { Linear, Module, mseLoss } from "@opt/nn";
import { Adam } from "@opt/optim";

const FREQUENCIES = [1, 2, 4];
const SAMPLES = 6;

const encode = (x: Tensor) => concat([x, ...FREQUENCIES.flatMap((f) => [sin(x.mul(f)), cos(x.mul(f))])], -1);

class NeRF extends Module {
  hidden = new Linear(21, 16);
  density = new Linear(16, 1);
  color = new Linear(16 + 3, 3);

  forward(places: Tensor, directions: Tensor): [density: Tensor, color: Tensor] {
    const hidden = this.hidden.forward(encode(places)).relu();
    const color = this.color.forward(concat([hidden, directions], -1)).sigmoid();
    return [this.density.forward(hidden).relu().squeeze(-1), color];
  }
}

export function program(dtype: DType) {
  const model = new NeRF().to(dtype);
  const optimizer = new Adam(model.namedParameters(), { lr: 5e-3 });
  const depths = linspace(0.5, 2, SAMPLES, { dtype });

  function render(origins: Tensor, directions: Tensor): Tensor {
    const along = directions.unsqueeze(1);
    const places = origins.unsqueeze(1).add(along.mul(depths.unsqueeze(1)));
    const [density, color] = model.forward(places, along.expand(places.shape));
    const alpha = density
      .mul(-1.5 / (SAMPLES - 1))
      .exp()
      .neg()
      .add(1);
    const first = onesLike(alpha.slice(0, 1, 1));
    const passed = cumprod(
      concat(
        [
          first,
          alpha
            .slice(0, -1, 1)
            .neg()
            .add(1 + 1e-10),
        ],
        1,
      ),
      1,
    );
    return alpha.mul(passed).unsqueeze(-1).mul(color).sum(1);
  }

  function step(origins: Tensor, directions: Tensor, colors: Tensor) {
    const loss = mseLoss(render(origins, directions), colors);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
