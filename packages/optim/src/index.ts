/** `@opt/optim`: every optimizer of the workspace, a line for each package. */
export * from "@opt/adadelta";
export * from "@opt/adafactor";
export * from "@opt/adagrad";
export * from "@opt/adam-amsgrad";
export * from "@opt/adamax";
export * from "@opt/ademamix";
export * from "@opt/asgd";
export * from "@opt/lamb";
export * from "@opt/lbfgs";
export * from "@opt/lion";
export * from "@opt/muon";
export * from "@opt/nadam";
export * from "@opt/radam";
export * from "@opt/rmsprop";
export * from "@opt/rprop";
export * from "@opt/schedule-free";
export * from "@opt/sgd";
