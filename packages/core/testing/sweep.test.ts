// Ops with rare arguments and sizes, as PyTorch has them, and on paths that PyTorch is not asked for.
import { pathsSuite, sweepSuite } from "@opt/testkit";
import { opSweep } from "./sweep";

await sweepSuite(new URL("goldens/sweep.json", import.meta.url), opSweep());
pathsSuite(opSweep());
