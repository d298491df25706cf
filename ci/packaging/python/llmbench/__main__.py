from llmbench import main

main()
