// Adamax against PyTorch 2.13.
import { goldenSuite } from "@opt/testkit";
import { Adamax } from "./adamax";

goldenSuite({ name: "js", optimizers: { Adamax } });
