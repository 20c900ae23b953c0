/** The optimizers on a real GPU against PyTorch's numbers. */
import { init } from "@opt/core";
import { goldenSuite, whyUnavailable } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { describe, it } from "vitest";
import { openCudaBackend } from "./index";

const reason = await whyUnavailable(async () => openCudaBackend());
if (reason === undefined)
  goldenSuite({ name: "cuda", optimizers: await optimizerClasses(), device: () => init("cuda") });
else describe(`cuda goldens (skipped: ${reason})`, () => it("agree with PyTorch", ({ skip }) => skip(reason)));
