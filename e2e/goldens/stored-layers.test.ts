// PyTorch's numbers of layers on the devices that answer at once as js does, eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { storedSuite } from "@opt/testkit";
import { describe } from "vitest";
import { STORED } from "../../packages/nn/testing/stored-calls";

for (const [subject, calls] of Object.entries(STORED)) {
  const file = new URL(`../../packages/nn/testing/goldens/${subject}.json`, import.meta.url);
  describe(subject, () => storedSuite(file, calls, ["wasm", "cpu"]));
}
