// Layers as PyTorch has them, without PyTorch: values, gradients, buffers.
import { storedSuite } from "@opt/testkit";
import { describe } from "vitest";
import { STORED } from "./stored-calls";

for (const [subject, calls] of Object.entries(STORED)) {
  describe(subject, () => storedSuite(new URL(`goldens/${subject}.json`, import.meta.url), calls));
}
