// SGD against PyTorch 2.13.
import { goldenSuite } from "@opt/testkit";
import { SGD } from "./sgd";

goldenSuite({ name: "js", optimizers: { SGD } });
