/** The optimizers on a real GPU against PyTorch's numbers. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { init } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { goldenSuite, whyUnavailable } from "@opt/testkit";
import { describe, it } from "vitest";
import { openCudaBackend } from "./index";

const reason = await whyUnavailable(async () => openCudaBackend());
if (reason === undefined) goldenSuite({ name: "cuda", optimizers: { NAdam, Adam, AdamW }, device: () => init("cuda") });
else describe(`cuda goldens (skipped: ${reason})`, () => it("agree with PyTorch", ({ skip }) => skip(reason)));
