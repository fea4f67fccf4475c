"""Pages of `wfdsl view` about what this package does. Entry points make them known to the viewer."""
