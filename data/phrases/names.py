"""People's names: English, Spanish and invented.

There are so many that a model learns to copy a name instead of memorizing all of them.
"""

from __future__ import annotations

from grammar import Dice, listed

MEN = listed("""Tom Peter David Carlos Daniel Pablo Luis Miguel Antonio Diego Mario Samuel Martin Robert Frank Jack
Paul Ben Sergio Andrés Alan Albert Alejandro Alex Alfonso Álvaro Andrew Ángel Anthony Arthur Bernardo Bob Brian Bruno
Charles Chris César Cristian Dan Darío Dennis Domingo Edward Eduardo Emilio Enrique Eric Ernesto Esteban Fabio
Federico Fernando Francisco Fred Gabriel Gary Gonzalo Guillermo Gustavo Harry Henry Ignacio Ivan Jacob Jaime James
Javier Jeff Jim Joaquín John Jorge José Joseph Juan Julio Keith Ken Kevin Larry Leo Leonardo Lorenzo Lucas Manuel
Marcos Marco Mateo Matthew Max Michael Mike Nicolás Nick Noah Octavio Oliver Pedro Philip Rafael Ramón Raúl Ricardo
Richard Roberto Rodrigo Roger Roy Rubén Salvador Sam Santiago Sebastián Simón Simon Steve Theo Thomas Tim Tomás Tony
Vicente Víctor Walter William Zack Abel Abraham Adolfo Agustín Aldo Alec Alfred Amado Amos Anselmo Archie Arnold
Arturo Aurelio Axel Baltasar Bartolomé Benito Benjamin Bernard Bert Blas Boris Brad Bradley Brandon Bruce Camilo Carl
Casimiro Cecil Celso Christian Claude Claudio Clemente Clifford Clive Cody Colin Conrad Craig Curtis Cyril Damián
Darren Derek Desmond Dominic Donald Douglas Duncan Dylan Edgar Edmund Efraín Eliseo Elías Elliot Emmanuel Ethan Eugene
Eugenio Evaristo Ezequiel Fabián Félix Fermín Fidel Floyd Fulgencio Gael Gaspar Gavin Geoffrey Gerald Gerardo Germán
Gilbert Gilberto Giles Glenn Gordon Graham Greg Gregorio Harold Harvey Héctor Herbert Hernán Hilario Horacio Howard
Hubert Humberto Ian Iker Irving Isaac Ismael Jared Jasper Jeremy Jerome Jerónimo Jesse Joel Jonathan Josh Joshua
Julian Justin Karl Kenneth Kurt Kyle Lawrence Leandro Leon Leonard Leroy Lewis Lisandro Lloyd Louis Lucio Luke Luther
Malcolm Marcelo Marcus Mariano Marvin Mauricio Maurice Maximiliano Melvin Milton Mitchell Moisés Morris Narciso Nathan
Neil Nelson Néstor Norman Olaf Omar Orlando Oswaldo Otto Owen Pascual Patrick Percy Perry Plácido Quentin Quintín
Ralph Ramiro Randy Raymond Reinaldo René Rodney Rogelio Román Ronald Roque Ross Rufus Rupert Russell Ryan Saúl Scott
Sean Seth Sidney Silvio Spencer Stanley Stuart Teodoro Terence Timothy Todd Travis Trevor Ulises Urbano Valentín
Vernon Virgilio Wallace Warren Wayne Wesley Wilfredo Xavier Yago Zacarías""")
WOMEN = listed("""Anna Mary Lucy Elena Sara Laura Carmen Julia Rosa Sofía Marta Emma Alice Clara Eva Linda Susan Kate
Teresa Paula Adriana Agnes Alicia Alma Amalia Amanda Amelia Amy Ana Andrea Ángela Angela Antonia Ava Barbara Beatriz
Becky Belén Berta Betty Blanca Camila Carla Carol Carolina Caroline Catalina Cecilia Charlotte Claudia Cristina
Daniela Diana Dolores Donna Dora Ellen Elisa Elsa Emily Erica Esther Fátima Fiona Florence Gabriela Gloria Hannah
Helen Inés Irene Isabel Isabella Jenny Jessica Jimena Joan Juana Judy Julie Karen Lara Leonor Lidia Lily Lola Lucía
Luisa Maggie Manuela Margarita María Mariana Marina Martina Mercedes Mia Miriam Molly Mónica Nancy Natalia Nina Noelia
Nuria Pamela Patricia Pilar Polly Raquel Rebecca Rita Rocío Sally Sandra Sarah Sheila Sonia Sophie Tina Valentina
Valeria Vanessa Vera Verónica Victoria Virginia Wendy Ximena Yolanda Zoe Abigail Ada Adela Adelaide Águeda Aileen
Aitana Alana Alba Alejandra Aleida Alexandra Alfonsina Alison Alondra Amparo Anabel Anita Annie Araceli Ariadna Ariana
Arlene Astrid Asunción Audrey Aurora Azucena Beatrice Begoña Benita Bernarda Bernice Bertha Beth Betsy Beverly Bianca
Bonnie Brenda Bridget Brígida Candela Caridad Carina Carlota Carmela Carrie Casandra Catherine Celeste Celia Chiara
Chloe Christine Cindy Clare Clementina Cleo Concepción Constance Consuelo Cora Corina Cynthia Dafne Daisy Dana Daphne
Debbie Deborah Delia Denise Dina Dolly Doreen Doris Dorothy Edith Edna Edurne Eileen Elaine Eleanor Elisabet Elizabeth
Eloísa Elsie Elvira Emilia Encarna Erika Ernestina Estefanía Estela Ethel Eugenia Eulalia Eunice Evangelina Evelyn
Fabiola Felicia Felicity Fernanda Flavia Flora Frances Francisca Freda Frida Gail Gemma Genoveva Georgia Georgina
Geraldine Gertrudis Gina Gisela Giselle Gladys Glenda Graciela Greta Griselda Guadalupe Gwen Harriet Heather Heidi
Helena Herminia Hilary Hilda Holly Hortensia Ida Ileana Imogen Ingrid Inma Iria Iris Isadora Itziar Ivana Ivonne Ivy
Jacinta Jacqueline Janet Janice Jasmine Jean Jennifer Jill Joanna Jocelyn Josefa Josefina Josephine Joyce Juanita
Judith Juliana Juliet Kathleen Katie Kay Kelly Kim Kirsten Laila Lauren Laurie Leah Leila Lena Leticia Libby Lilian
Liliana Lisa Lois Lorena Loretta Lorraine Louise Lourdes Lucinda Lucrecia Lupe Lydia Mabel Macarena Madeleine
Magdalena Maite Malena Maribel Marcela Marcia Marge Marian Maricarmen Marie Mariela Marion Marisa Marisol Marjorie
Marlene Martha Matilde Maureen Mavis Megan Melanie Melisa Micaela Michelle Milagros Mildred Millie Minerva Miranda
Mireia Muriel Myra Nadia Naomi Natasha Nelly Nerea Nicola Noemí Norma Octavia Ofelia Olga Paloma Pat Paulina Penélope
Penny Perla Petra Philippa Phoebe Phyllis Priscila Prudencia Rachel Rebeca Regina Renata Rhoda Rina Roberta Robin
Romina Rosalía Rosalind Rosario Roxana Ruth Sabrina Salma Samantha Sandy Saskia Selena Selma Serena Shannon Sharon
Shirley Simona Soledad Stella Stephanie Sue Susana Tabitha Tamara Tania Tara Tatiana Tessa Thelma Theresa Tracy
Trinidad Trudy Úrsula Vicky Vilma Violet Violeta Viviana Winifred Yasmín Yvonne Zaida Zelda Zulema""")
HELD_OUT_MEN = listed("""Felipe George Hugo Oscar Adam Armando""")
HELD_OUT_WOMEN = listed("""Nora Jane Silvia Olivia Grace Ramona""")
"""Names reserved for the held-out split."""

BEGINNINGS = listed("""A Al An Ar Ba Be Bel Bri Ca Cla Co Da De Dor E El Fa Fe Flo Ga Ge Gra Ha He Hu I Is Ja Jo Ju
Ka Ki La Le Lo Lu Ma Me Mi Mo Na Ne No O Ol Os Pa Pe Pi Ra Re Ri Ro Ru Sa Se Si So Su Ta Te Ti To U Va Ve Vi Wa Wi Xi
Ya Yo Za""")
MIDDLES = listed("""b bel br c d dam dr f fan g gan gl l ld lip ll lm lor lv m man mar mb mil mir mon n nd nel nor
nt p pol r rad ram rd ris rl rm rn rod rt s sal sc sel st t tan tim tr v van vid vir z""")
ENDS_OF_MEN = listed("o io an ar as el en er in ino ito on or us e ard ert am")
ENDS_OF_WOMEN = listed("a ia ana ela ella ena era esa etta ina ira is isa ita ona ora ula e elle ane")


def invented(dice: Dice, gender: str) -> str:
    """Return an invented name, such as “Belmirina”; one in three has any shape."""
    if dice.chance(1 / 3):
        return odd(dice)
    end = dice.choice(ENDS_OF_WOMEN if gender == "f" else ENDS_OF_MEN)
    return dice.choice(BEGINNINGS) + dice.choice(MIDDLES) + end


ONSETS = listed(
    "b br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p ph pl pr qu r rh s sh sk sl sm sn sp st str t th tr v vl "
    "w wh x y z zh zv"
)
SHORT_ONSETS = listed("b c d f g h j k l m n p r s t v w z")
VOWELS = listed("a a a e e e i i o o u y ai ea oo ou ie au ei ae")
CODAS = listed("n n r r l l s s k m t x d g b v z nd rk lt st th ck rn ng ll ff sk mp zz")


WORDS = frozenset(listed("""who why how what the they you her his him she here hear ten tea tie two are our out
not now eat hat hot may"""))  # fmt: skip
"""Words that are no names."""


def odd(dice: Dice) -> str:
    """Return an invented name of any shape, such as “Zorvik” or “Brenthu”."""
    name = dice.choice(ONSETS) if dice.chance(0.85) else ""
    count = dice.choice((1, 2, 2, 2, 2, 3))
    for index in range(count):
        name += dice.choice(VOWELS)
        if index == count - 1:
            name += dice.choice(CODAS) if dice.chance(0.55) else ""
        else:
            name += dice.choice("lnrst") if dice.chance(0.3) else ""
            name += dice.choice(ONSETS if dice.chance(0.5) else SHORT_ONSETS)
    name = name if len(name) > 2 else name + dice.choice(("rvik", "lba", "nto"))
    return odd(dice) if name in WORDS else name.capitalize()
