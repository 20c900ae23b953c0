/** A small run whose every bit is known from its seed, for the page and for Node. */
import { optimizerContents, optimizerState } from "@opt/checkpoint";
import { type Compiled, compile, Generator, init, type Tensor, tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";

await init("js");

export class Training {
  readonly #model: Sequential;
  readonly #optimizer: NAdam;
  readonly #trainOn: Compiled<[inputs: Tensor, labels: Tensor], void>;
  step = 0;

  constructor(seed: number) {
    const generator = new Generator(seed);
    this.#model = new Sequential(new Linear(12, 16, { generator }), new ReLU(), new Linear(16, 4, { generator }));
    this.#optimizer = new NAdam(this.#model.namedParameters(), { lr: 0.01 });
    this.#trainOn = compile((inputs, labels) => {
      crossEntropy(this.#model.forward(inputs), labels).backward();
      this.#optimizer.step();
      this.#optimizer.zeroGrad();
    });
  }

  train(steps: number): void {
    for (let i = 0; i < steps; i++) {
      const generator = new Generator(1000 + this.step++);
      tidy(() => {
        const inputs = tensor(
          Float32Array.from({ length: 96 }, () => generator.nextFloat()),
          { shape: [8, 12] },
        );
        const labels = tensor(
          Int32Array.from({ length: 8 }, (_, row) => row % 4),
          { dtype: "i32" },
        );
        this.#trainOn(inputs, labels);
      });
    }
  }

  get contents() {
    const { tensors, values } = optimizerContents(this.#optimizer.stateDict());
    return { step: this.step, tensors: { ...this.#model.stateDict(), ...tensors }, values };
  }

  resume(loaded: Parameters<typeof optimizerState>[0] & { readonly step: number | undefined }): void {
    const { tensors, step } = loaded;
    const weights = Object.keys(this.#model.stateDict()).map((name): [string, Tensor] => [name, tensors[name]!]);
    this.#model.loadStateDict(Object.fromEntries(weights));
    this.#optimizer.loadStateDict(optimizerState(loaded));
    this.step = step!;
  }

  /** Every bit of the weights and of what the optimizer remembers. */
  get bits(): string {
    const { tensors, values } = this.contents;
    const all = Object.entries(tensors).map(([name, saved]) => {
      const one = "tensor" in saved ? saved.tensor : saved;
      return `${name} ${[...one.bytesSync()].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    });
    return [...all.sort(), JSON.stringify(values)].join("\n");
  }
}
