import { cumsum, type DType, logcumsumexp, softplus, type Tensor, where } from "@opt/core";
import { crossEntropy, Embedding, Linear, Module, RMSNorm } from "@opt/nn";
import { AdamW } from "@opt/optim";

/** All places at once, in logarithms (Feng et al. 2024). */
class MinGRU extends Module {
  z = new Linear(8, 8);
  h = new Linear(8, 8);

  forward(x: Tensor): Tensor {
    const gate = this.z.forward(x);
    const hidden = this.h.forward(x);
    const kept = cumsum(softplus(gate).neg(), 1);
    const added = softplus(gate.neg()).neg();
    const candidate = where(hidden.ge(0), hidden.relu().add(0.5).log(), softplus(hidden.neg()).neg());
    return kept.add(logcumsumexp(added.add(candidate).sub(kept), 1)).exp();
  }
}

class LanguageModel extends Module {
  embedding = new Embedding(11, 8);
  norm = new RMSNorm(8, { eps: 1e-6 });
  gru = new MinGRU();
  output = new Linear(8, 11);

  forward(tokens: Tensor): Tensor {
    const x = this.embedding.forward(tokens);
    return this.output.forward(x.add(this.gru.forward(this.norm.forward(x))));
  }
}

export function program(dtype: DType) {
  const model = new LanguageModel().to(dtype);
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });

  function step(tokens: Tensor, targets: Tensor) {
    const loss = crossEntropy(model.forward(tokens), targets);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  }
  return { models: { model }, step };
}
