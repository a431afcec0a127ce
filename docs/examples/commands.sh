# The guide's commands, on the files that deploy.cpp writes.
set -eu
burin inspect model.burin
burin compile model.burin -o model.plate --target x86-64-v3,x86-64-v4
burin inspect model.plate --dim batch=8
burin verify model.burin --dim batch=5
burin bisect model.burin --dim batch=5
burin bench model.plate --dim batch=8 --threads 1 --min-time 0.05
burin run model.plate --input image=@image.npy --output probabilities=@y.npy
burin-run model.plate --input image=@image.npy --expect probabilities=@probabilities.npy --rtol 0 --atol 0
burin-run model.plate --dim batch=8 --profile
burin compile model.burin --emit optimized
burin compile model.burin --emit asm -o model.s
burin compile model.burin --emit dot -o model.dot
burin compile model.burin -o model.plate --time-passes
burin compile model.burin -o model.plate --print-after burin-fuse
burin-opt model.burin --burin-decompose -o model.mlir
# On the files that programs.cpp writes.
burin-run learner.plate --function train_step --data input=@points.npy --data target=@inside.npy --save-state learned.safetensors
burin-run learner.plate --function predict --state learned.safetensors --input input=@queries.npy
# What train.c has learned.
burin-run learner.plate --function predict --state trained.safetensors --input input=@queries.npy
# docs/architecture.md, on the file that stages.cpp writes.
burin compile stages.burin --emit optimized
burin compile stages.burin --emit kernels
burin compile stages.burin --emit loops --target x86-64-v3
burin compile stages.burin --emit asm --target x86-64-v3
burin compile stages.burin -o stages.plate --target x86-64-v3
burin inspect stages.plate --dim n=5
