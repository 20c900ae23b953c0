// PyTorch's numbers of distributions on the devices that answer at once as js does, and samples with the words of js.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Generator, init, tensor } from "@opt/core";
import { Bernoulli, Beta, Categorical, Dirichlet, Gamma, Laplace, Normal, Poisson, StudentT } from "@opt/core/distributions";
import { eachDevice, storedSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import { distributionCalls } from "../../packages/core/testing/distributions/calls";

const file = new URL("../../packages/core/testing/goldens/distributions.json", import.meta.url);
await storedSuite(file, distributionCalls(), ["wasm", "cpu"]);

/** All of them, by one generator. */
async function samplesOn(device: string): Promise<number[][]> {
  await init(device);
  const options = { generator: new Generator(5) };
  const some = tensor([0.01, 0.5, 2, 60]);
  const distributions = [
    new Normal(0, some),
    new Laplace(0, some),
    new Gamma(some, 2),
    new Beta(some, 1),
    new Dirichlet(some),
    new StudentT(some),
    new Poisson(some),
    new Bernoulli({ logits: some }),
    new Categorical({ probs: some }),
  ];
  return distributions.map((of) => Array.from(of.sample([50], options).dataSync()));
}

await eachDevice(
  (device) =>
    it("samples have the words of js", async () => {
      expect(await samplesOn(device.name)).toEqual(await samplesOn("js"));
    }),
  ["wasm", "cpu"],
);
