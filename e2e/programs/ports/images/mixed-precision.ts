import { autocast, type DType, GradScaler, type Tensor } from "@opt/core";
import { crossEntropy, GELU, LayerNorm, Linear, Sequential } from "@opt/nn";
import { AdamW } from "@opt/optim";

export function program(dtype: DType) {
  const model = new Sequential(new Linear(12, 16), new GELU(), new LayerNorm(16), new Linear(16, 5)).to(dtype);
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-3 });
  const scaler = new GradScaler({ initScale: 1024 });

  function step(x: Tensor, labels: Tensor) {
    const loss = autocast("bf16", () => crossEntropy(model.forward(x), labels));
    optimizer.zeroGrad();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    return loss;
  }
  return { models: { model }, step };
}
