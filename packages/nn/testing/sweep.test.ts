// Layers and losses with rare arguments and sizes, as PyTorch has them, and on paths that PyTorch is not asked for.
import { pathsSuite, sweepSuite } from "@opt/testkit";
import { layerSweep } from "./sweep";

await sweepSuite(new URL("goldens/sweep.json", import.meta.url), layerSweep());
pathsSuite(layerSweep());
