import type { DType, Tensor } from "@opt/core";
import { Embedding, EmbeddingBag, Module, mseLoss } from "@opt/nn";
import { Adagrad } from "@opt/optim";

class Recommender extends Module {
  users = new Embedding(12, 5);
  items = new Embedding(15, 5);
  genres = new EmbeddingBag(6, 5, { mode: "mean" });
  userBias = new Embedding(12, 1);
  itemBias = new Embedding(15, 1);

  forward(users: Tensor, items: Tensor, genres: Tensor): Tensor {
    const taste = this.users.forward(users);
    const content = this.items.forward(items).add(this.genres.forward(genres));
    const bias = this.userBias.forward(users).add(this.itemBias.forward(items)).squeeze(1);
    return taste.mul(content).sum(1).add(bias);
  }
}

export function program(dtype: DType) {
  const model = new Recommender().to(dtype);
  const optimizer = new Adagrad(model.namedParameters(), { lr: 0.1, weightDecay: 1e-4 });

  function step(users: Tensor, items: Tensor, genres: Tensor, ratings: Tensor) {
    const loss = mseLoss(model.forward(users, items, genres), ratings);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss;
  }
  return { models: { model }, step };
}
