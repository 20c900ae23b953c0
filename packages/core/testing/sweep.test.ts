// Ops with rare arguments and sizes, as PyTorch has them.
import { sweepSuite } from "@opt/testkit";
import { opSweep } from "./sweep";

await sweepSuite(new URL("goldens/sweep.json", import.meta.url), opSweep());
